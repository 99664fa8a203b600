"""Loading the `mcp` library, which takes a second or two, without stopping the event loop."""

import asyncio
import logging
import sys
from importlib import import_module


async def load_library() -> None:
    """Imports what connections use, in a thread, unless it is there."""
    if "mcp.client.client" not in sys.modules:
        await asyncio.to_thread(import_module, "mcp.client.client")
        _hush()


def _hush() -> None:
    """Keeps the library's log, tracebacks included, off the screen; what matters is raised as well."""
    for name in ("mcp", "httpx2"):
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
