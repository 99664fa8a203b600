"""Notices that a server was stopped by somebody else while nothing runs."""

import asyncio
from collections.abc import Callable

from agent.app.background import in_background
from agent.app.engine import Engine
from agent.app.keeper import is_gone
from agent.app.live import LiveSession
from agent.core.events import ServerState

LOOK_SECONDS = 5.0
_STOPPED = ServerState(state="stopped", detail="stopped from outside")


async def watch_server(live: LiveSession) -> None:
    """Looks every few seconds at the record of the server, never at the server, until it is cancelled."""
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        await look_once(live)


async def look_once(live: LiveSession, gone: Callable[[Engine], bool] = is_gone) -> None:
    """Tells once that the server is not there any more. A turn finds that out by itself."""
    engine = live.keeper.engine
    if engine is None or live.is_running or live.changing.locked() or live.server_state == "stopped":
        return
    is_still_there = not await in_background(lambda: gone(engine))
    if is_still_there or live.is_running or live.keeper.engine is not engine:
        return
    live.emit(_STOPPED)
