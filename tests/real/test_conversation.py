"""A live session with a real server: a cancel frees its only slot, and the next turn finds its prompt."""

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.app.chat.interactive import InteractiveSession, open_session
from agent.config.load import LoadedSettings, load_settings
from agent.core.events import Event, Prefill
from agent.resources import data_folder
from agent.server.record import list_records

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

PROMPT = "Tell me about the files in this folder. " * 10


def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoadedSettings:
    """The small model on one thread, in folders of its own but with the models that are there."""
    models = os.environ.get("AGENT_MODELS_FOLDER") or str(data_folder() / "models")
    for kind in ("config", "state", "data"):
        monkeypatch.setenv(f"AGENT_{kind.upper()}_HOME", str(tmp_path / kind))
    flags = {"profile": "embedded-small", "models.folder": models, "permissions.mode": "plan"}
    loaded = load_settings(None, {}, flags)
    server = loaded.settings.server.model_copy(update={"threads": 1, "reuse": False})
    return replace(loaded, settings=loaded.settings.model_copy(update={"server": server}))


async def next_of(events: AsyncIterator[Event], *kinds: str) -> Event:
    async for event in events:
        if event.type in kinds:
            return event
    raise AssertionError(f"the session ended without any of {kinds}")


async def cancelled_while_writing(session: InteractiveSession, events: AsyncIterator[Event]) -> Prefill:
    """Begins a turn and cancels it at its first word; gives the first progress of its prefill."""
    session.prompt(PROMPT)
    progress = await next_of(events, "prefill")
    await next_of(events, "tool_call_delta", "text_delta")
    session.cancel()
    await next_of(events, "turn_finished")
    assert isinstance(progress, Prefill)
    return progress


async def test_a_cancel_ends_the_reading_of_a_long_prompt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    loaded = settings(tmp_path, monkeypatch)
    work = tmp_path / "work"
    work.mkdir()
    session = await open_session(work, loaded=loaded)
    events = session.events()
    try:
        session.prompt(PROMPT * 25)
        begun = await next_of(events, "prefill")
        while isinstance(begun, Prefill) and begun.total < 2000:  # the beginning, which is read before it
            begun = await next_of(events, "prefill")
        session.cancel()
        await next_of(events, "turn_finished")
        session.prompt("Go on.")
        again = await next_of(events, "prefill")
    finally:
        await session.close()
    assert isinstance(begun, Prefill)
    assert isinstance(again, Prefill)
    assert begun.total > 2000
    # What the slot holds is what was read before it heard of the cancel.
    assert again.cached < begun.total / 2


async def test_a_cancel_frees_the_slot_and_the_next_turn_finds_its_prompt_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    loaded = settings(tmp_path, monkeypatch)
    work = tmp_path / "work"
    work.mkdir()
    session = await open_session(work, loaded=loaded)
    events = session.events()
    try:
        first = await cancelled_while_writing(session, events)
        second = await cancelled_while_writing(session, events)
    finally:
        await session.close()
    assert second.total > first.total
    assert second.cached >= first.total - 2
    assert not list_records(tmp_path / "state" / "run")
