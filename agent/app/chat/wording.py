"""What the model is told where a person types something: the same, and what has to be known with it."""

import asyncio
from pathlib import Path

from agent.app.background import in_background
from agent.app.chat.engine import Engine
from agent.app.chat.live import LiveSession
from agent.app.chat.mentions import Attacher, PictureShelf
from agent.app.chat.pictures import BLIND, has_pictures, sees, without_pictures
from agent.app.mcp.offers import McpDocuments
from agent.app.run.past import branch_in
from agent.app.turns.since import another_branch, another_day
from agent.core.briefing import LISTED_FILES
from agent.core.cancel import InterruptedRunError, unless_cancelled
from agent.core.events import PrefixBroken
from agent.core.inbox import Said
from agent.core.messages import UserMessage
from agent.core.outside_text import shown_name
from agent.repo.files import list_files
from agent.session.forked import PICTURES_NAME

_CHARACTERS_PER_TOKEN = 3
# Shares of the context window, and what takes their place where its size is not known.
_ATTACHED_SHARE = 0.35
_UNKNOWN_WINDOW_CHARACTERS = 24_000
_WHEREABOUTS_SHARE = 0.04
_WHEREABOUTS_CHARACTERS = 1_500
_LISTED_AT_THE_TOP = 40
_GLANCE_SECONDS = 0.1
"""Git takes longer in a large repository, and nobody waits for that: a new branch is told later then."""
_PLAN = "(Plan mode: change nothing yet. End with the steps as a checklist: - [ ] step.)"
_CARRY_OUT = "(Plan mode is over. When a step is done, write it again as - [x] step.)"


async def worded(live: LiveSession, text: str) -> Said:
    """A person's text with the files that it mentions; the first one also says where the model is.

    Raises:
        InterruptedRunError: the turn was cancelled meanwhile.
    """
    return await unless_cancelled(_worded(live, text), live.cancel)


class AttachingInbox:
    """The `Inbox` of a live session: steering mentions files as prompts do."""

    def __init__(self, live: LiveSession) -> None:
        self._live = live

    async def take(self) -> list[Said]:
        inbox = self._live.inbox
        said = [Said(note, note, is_note=True) for note in inbox.take_notes()]
        texts = inbox.take_steering()
        for position, text in enumerate(texts):
            try:
                said.append(await worded(self._live, text))
            except InterruptedRunError:
                inbox.steer_again(texts[position:])
                break
        return said


async def _worded(live: LiveSession, text: str) -> Said:
    engine = live.keeper.engine
    window = engine.model.context_tokens if engine else 0
    free = int(max(0, window - live.used_tokens) * _ATTACHED_SHARE) * _CHARACTERS_PER_TOKEN
    shelf = PictureShelf(live.record.store.folder / PICTURES_NAME, lambda: why_blind(live))
    attacher = Attacher(
        workspace=live.workspace,
        gate=live.gate,
        emit=live.emit,
        documents=McpDocuments(live.mcp, live.record.store.folder / "output"),
        pictures=shelf,
    )
    attached = await attacher.attached(text, free if window else _UNKNOWN_WINDOW_CHARACTERS)
    parts = list(attached.parts)
    messages = live.record.conversation.messages
    if any(isinstance(one, UserMessage) for one in messages):
        live.glance.refresh()
        await live.glance.settled(_GLANCE_SECONDS)
        branch = another_branch(live.glance.branch, messages, branch_in(live.record.old))
        parts = [*branch, *another_day(live.today(), messages), *parts]
    else:
        await live.glance.settled()
        room = int(window * _WHEREABOUTS_SHARE) * _CHARACTERS_PER_TOKEN or _WHEREABOUTS_CHARACTERS
        most = min(room, _WHEREABOUTS_CHARACTERS)
        where = await asyncio.to_thread(whereabouts, live.workspace, live.glance.branch, most)
        parts = [where, *another_day(live.today(), messages), *parts]
    asked = _about_planning(live)
    return Said(text, "\n\n".join([*parts, *asked, text]), pictures=attached.pictures)


def _about_planning(live: LiveSession) -> list[str]:
    """In plan mode, that a plan is wanted; with the first message after it, that it is to be kept up."""
    if live.gate.mode == "plan":
        live.is_planning = True
        return [_PLAN]
    if live.is_planning:
        live.is_planning = False
        return [_CARRY_OUT]
    return []


async def why_blind(live: LiveSession) -> str:
    """Why the model can see no image, as the end of a sentence; empty when it can."""
    engine = live.keeper.engine
    if engine is None:
        return "there is no server yet"
    if await in_background(lambda: sees(engine.endpoint)):
        return ""
    return BLIND


async def suit_the_blind(live: LiveSession, engine: Engine) -> None:
    """Takes images out of a conversation that goes on with a model which cannot see them."""
    conversation = live.record.conversation
    if not has_pictures(conversation.messages) or await in_background(lambda: sees(engine.endpoint)):
        return
    cause = "the model cannot see images, so they are told in words"
    conversation.begin_again(without_pictures(conversation.messages), cause)
    live.emit(PrefixBroken(cause=cause))


def whereabouts(workspace: Path, branch: str, most_characters: int) -> str:
    """Where the model is, in at most about so many characters. Reads the folder, so call it in a thread.

    A few files are listed as they are, of many only what is at the top. The folder is not named: a model of
    1.5B puts the name before each path that it writes, `proj/stock.py`, and finds nothing.
    """
    files = list_files(workspace, LISTED_FILES + 1)
    where = "You are in the working folder"
    if branch:
        where += f", on the git branch {shown_name(branch)}"
    if not files:
        return f"{where}. It is empty."
    if len(files) <= LISTED_FILES:
        heading, names = "Its files", files
    else:
        heading, names = "In it", _top_of(workspace)
    kept: list[str] = []
    room = most_characters - len(where) - len(heading)
    for name in map(shown_name, names):
        room -= len(name) + 2
        if room < 0:
            kept.append("…")
            break
        kept.append(name)
    return f"{where}. {heading}: {', '.join(kept)}"


def _top_of(workspace: Path) -> list[str]:
    """What is right in the folder, with a slash behind folders; hidden and ignored ones left out."""
    names = {name.partition("/")[0] + "/" * ("/" in name) for name in list_files(workspace)}
    shown = sorted(name for name in names if not name.startswith("."))
    return [*shown[:_LISTED_AT_THE_TOP], *["…"] * (len(shown) > _LISTED_AT_THE_TOP)]
