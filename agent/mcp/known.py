"""What is remembered of servers that were connected to: their tools, so that a prompt can name them at once.

One JSON file for each server and configuration, below the state folder. What is in it came from the server
and is trusted no more than the server is.
"""

import json
import os
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agent.core.private_folder import make_private_folder
from agent.mcp.config import ServerSpec
from agent.mcp.connection import RemoteTool

_LARGEST_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class KnownServers:
    """The record in `folder`."""

    folder: Path

    @classmethod
    def of(cls, state: Path) -> "KnownServers":
        """The record below the state folder `state`."""
        return cls(state / "mcp" / "known")

    def tools(self, spec: ServerSpec) -> list[RemoteTool] | None:
        """The tools that were listed last, in the server's order; None where this was never connected to."""
        path = self._path(spec)
        try:
            if path.stat().st_size > _LARGEST_BYTES:
                return None
            record = json.loads(path.read_bytes().decode("utf-8"))
            return [_tool(item) for item in record["tools"]]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def remember(self, spec: ServerSpec, tools: list[RemoteTool]) -> None:
        """Keeps the tools of a server. That it cannot be written only costs the next session a connect."""
        record = {"version": 1, "server": spec.name, "at": int(time.time())}
        content = json.dumps({**record, "tools": [asdict(tool) for tool in tools]})
        temporary: Path | None = None
        try:
            make_private_folder(self.folder)
            descriptor, name = tempfile.mkstemp(prefix=".known.", dir=self.folder)
            temporary = Path(name)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(content)
            temporary.replace(self._path(spec))
        except OSError:
            if temporary is not None:
                temporary.unlink(missing_ok=True)

    def forget(self, spec: ServerSpec) -> None:
        """Forgets the tools of a server."""
        self._path(spec).unlink(missing_ok=True)

    def _path(self, spec: ServerSpec) -> Path:
        return self.folder / f"{spec.fingerprint}.json"


def _tool(item: dict[str, Any]) -> RemoteTool:
    name, description = item["name"], item["description"]
    if not isinstance(name, str) or not isinstance(description, str):
        raise TypeError("not a tool")
    return RemoteTool(name, description, item["schema"], item.get("read_only") is True)
