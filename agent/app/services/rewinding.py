"""Going back to before a turn: in the conversation, in the files, or in both."""

import asyncio
from dataclasses import dataclass
from typing import Literal

from agent.app.chat.live import LiveSession
from agent.core.errors import UsageError
from agent.core.events import PrefixBroken, Rewound
from agent.core.outside_text import shown_name
from agent.resources import state_folder
from agent.session.rewind import RewoundFiles, rewind_files

What = Literal["chat", "files", "both"]
WHAT: tuple[What, ...] = ("chat", "files", "both")

_LONGEST_LINE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class RewindPoint:
    """A turn that can be gone back to before. `started` is in seconds since 1970, 0 where it is not known.

    `changed` are the files that the tools of this turn changed. `chat` says whether the conversation can go
    back so far: not where it is not known word for word, the files can even then.
    """

    turn: int
    first_line: str
    started: float
    changed: tuple[str, ...]
    chat: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RewindResult:
    """`prompt` is what began the turn, to be changed and sent again. `left` are (path, reason) of files that
    stayed as they are."""

    to_turn: int
    what: What
    prompt: str
    restored: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    left: tuple[tuple[str, str], ...] = ()


def rewind_points(live: LiveSession) -> list[RewindPoint]:
    """The turns of the conversation, oldest first. Those that never reached the model are none."""
    return [
        RewindPoint(
            turn=row.number,
            first_line=_first_line(row.prompt),
            started=row.started,
            changed=tuple(row.changed),
            chat=live.record.conversation.can_go_back(row.number),
        )
        for row in live.turns.rows
        if row.prompt and not row.is_gone
    ]


async def rewind(live: LiveSession, turn: object, what: object) -> RewindResult:
    """Goes back. What somebody else has changed since is left as it is, and named.

    Raises:
        UsageError: there is no such turn, or it cannot be gone back to.
        AgentError: files could not be put back; nothing was changed then.
    """
    if what not in WHAT:
        raise UsageError(f"rewind cannot go back in {what!r}", f"what goes back is {', '.join(WHAT)}")
    point = next((one for one in rewind_points(live) if one.turn == turn and turn is not True), None)
    if point is None:
        raise UsageError(f"there is no turn {turn!r} to go back to", "rewind_points lists them")
    if what != "files" and not point.chat:
        raise UsageError(
            f"the conversation cannot go back to before turn {point.turn}, which is not known word for word",
            "its files can: rewind with what = files",
        )
    later = [row for row in live.turns.rows if row.number >= point.turn and not row.is_gone]
    changed = list(dict.fromkeys(path for row in later for path in row.changed))
    prompt = next(row.prompt for row in later if row.number == point.turn)
    files = await _files(live, point.turn, changed) if what != "chat" else RewoundFiles()
    if what != "files":
        live.record.conversation.go_back(point.turn, f"went back to before turn {point.turn}")
    live.emit(
        Rewound(
            to_turn=point.turn,
            what=what,
            restored=files.restored,
            deleted=files.deleted,
            left=tuple(f"{path}: {reason}" for path, reason in files.left),
        )
    )
    _tell(live, point, what, files, changed)
    live.glance.refresh()
    return RewindResult(
        to_turn=point.turn,
        what=what,
        prompt=prompt,
        restored=files.restored,
        deleted=files.deleted,
        left=files.left,
    )


async def _files(live: LiveSession, turn: int, changed: list[str]) -> RewoundFiles:
    store, ledger = live.record.store, live.record.ledger

    def work() -> RewoundFiles:
        with ledger.own_changes(undoing=True):
            return rewind_files(state_folder(), live.workspace, store.folder, turn, changed)

    return await asyncio.to_thread(work)


def _tell(live: LiveSession, point: RewindPoint, what: What, files: RewoundFiles, changed: list[str]) -> None:
    """Says what the front and the model cannot know otherwise."""
    if what == "files":
        names = ", ".join(map(shown_name, (*files.restored, *files.deleted)))
        if names:
            live.inbox.note(f"(The user put files back: {names}. Read a file again before you change it.)")
        return
    live.emit(PrefixBroken(cause=f"the conversation went back to before turn {point.turn}"))
    live.takes_up(live.turns.context_tokens)
    differ = changed if what == "chat" else [path for path, _ in files.left]
    names = ", ".join(map(shown_name, differ))
    if names:
        live.inbox.note(f"(Files that may differ from what you have seen: {names}.)")


def _first_line(prompt: str) -> str:
    line = next(filter(None, (line.strip() for line in prompt.splitlines())), "")
    return line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 1]}…"
