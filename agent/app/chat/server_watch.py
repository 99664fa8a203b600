"""Notices that a server was stopped by somebody else while nothing runs, or works for somebody else."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from agent.app.background import in_background
from agent.app.chat.engine import Engine
from agent.app.chat.keeper import is_gone
from agent.app.chat.live import LiveSession
from agent.app.servers.slot_queue import tasks_at_work, waits_for
from agent.core.events import Notice, ServerState
from agent.resources import runtime_folder
from agent.server.probe import is_busy, slots_of
from agent.server.record import Record, list_records

LOOK_SECONDS = 5.0
MOST_LOOK_SECONDS = 40.0
"""Between two looks at the server of a session in which nothing happens: each wakes a sleeping program."""
SLOT_SECONDS = 1.0
"""How long a request may stay silent between two looks for what it waits for."""

STILL_BUSY = (
    "the server is still busy, with a part of what was interrupted or for somebody else; "
    "the next message waits for that"
)
_STOPPED = ServerState(state="stopped", detail="stopped from outside")
Slots = list[dict[str, Any]]


async def watch_server(live: LiveSession, look_seconds: float = LOOK_SECONDS) -> None:
    """Looks until it is cancelled: at the record of an idle session's server, ever more seldom, and each
    second at the slots of one that a request waits for.

    Args:
        look_seconds: before the first look at an idle session.
    """
    busy: frozenset[Any] = frozenset()
    pause = look_seconds
    while True:
        if not live.is_running:
            pause = look_seconds if live.is_left_off else pause
            if await _turn_begins(live, pause):
                continue
            is_first = pause == look_seconds
            pause = min(2 * pause, MOST_LOOK_SECONDS)
            await look_once(live)
            if is_first:
                await look_after_interruption(live)
        else:
            pause = look_seconds
            await asyncio.sleep(SLOT_SECONDS)
            busy = await look_at_slots_once(live, busy)


async def _turn_begins(live: LiveSession, most_seconds: float) -> bool:
    """Waits for that at most so long; whether it was woken, by a turn or a request that was interrupted."""
    live.began.clear()
    with suppress(TimeoutError):
        async with asyncio.timeout(most_seconds):
            return await live.began.wait()
    return False


async def look_once(
    live: LiveSession,
    gone: Callable[[Engine], bool] = is_gone,
    running: Callable[[], list[Record]] = lambda: list_records(runtime_folder()),
) -> None:
    """Tells once that the server is not there any more, and why. A turn finds that out by itself."""
    engine = live.keeper.engine
    if engine is None or live.is_running or live.changing.locked() or live.server_state == "stopped":
        return
    is_still_there = not await in_background(lambda: gone(engine))
    if is_still_there or live.is_running or live.keeper.engine is not engine:
        return
    others = await in_background(lambda: [record.profile for record in running() if record.is_running])
    if live.is_running or live.keeper.engine is not engine:
        return
    why = f"to make room for the server of profile {others[0]!r}" if others else "from outside"
    live.emit(_STOPPED)
    live.emit(Notice(text=f"the server was stopped {why}; it comes back with the next message"))


async def look_after_interruption(live: LiveSession, busy: Callable[[Engine], bool] | None = None) -> None:
    """Tells where a server still works although the last turn, or a request since, was interrupted.

    It ends with a token or a batch of the prompt, and on a slow machine a batch takes a while.
    """
    engine, turns = live.keeper.engine, live.turns.rows
    was_interrupted = live.is_left_off or (bool(turns) and turns[-1].reason == "cancelled")
    live.is_left_off = False
    if engine is None or live.is_running or not was_interrupted:
        return
    if await in_background(lambda: (busy or _is_busy)(engine)) and not live.is_running:
        live.emit(Notice(text=STILL_BUSY))


async def look_at_slots_once(
    live: LiveSession, before: frozenset[Any] = frozenset(), look: Callable[[Engine], Slots] | None = None
) -> frozenset[Any]:
    """Finds out whether a request that got no sign of the model yet waits for somebody else's.

    Returns:
        The tasks at work, for the next look; empty where no request waits.
    """
    engine = live.keeper.engine
    if engine is None or not live.moment.is_silent:
        return frozenset()
    slots = await in_background(lambda: (look or _slots_of)(engine))
    if not live.moment.is_silent or not slots:
        return frozenset()
    live.moment.waits_for = waits_for(slots, before)
    return tasks_at_work(slots)


def _slots_of(engine: Engine) -> Slots:
    record = engine.serving.record_of(engine.endpoint)
    return [] if record is None else slots_of(record) or []


def _is_busy(engine: Engine) -> bool:
    record = engine.serving.record_of(engine.endpoint)
    return record is not None and is_busy(record)
