"""Which sessions an editor is shown."""

from pathlib import Path

from agent.app.acp import MOST_LISTED, EditorHost
from agent.resources import state_folder
from agent.session.store import SessionKind, SessionStore


def record(work: Path, kind: SessionKind) -> str:
    with SessionStore.create(state_folder(), work, kind=kind) as store:
        return store.id


async def test_runs_and_undos_leave_the_conversations_before_them_in_the_list(work: Path):
    chat = record(work, "chat")
    for number in range(MOST_LISTED):
        record(work, "run" if number % 2 else "undo")
    assert [one.id for one in await EditorHost().sessions(work)] == [chat]


async def test_of_many_conversations_the_newest_are_listed(work: Path):
    chats = [record(work, "chat") for _ in range(MOST_LISTED + 1)]
    assert [one.id for one in await EditorHost().sessions(work)] == chats[:0:-1]
