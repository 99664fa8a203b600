"""Commands about the conversation itself: begin, resume, go back, compact, export."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from agent.core.cancel import InterruptedRunError
from agent.core.errors import UsageError
from agent.core.undo_words import brought_back, taken_back
from agent.ui.commands.command import Command, Host
from agent.ui.commands.reports import context_text
from agent.ui.options import Opening
from agent.ui.plan import as_text as plan_text
from agent.ui.plan import done_count
from agent.ui.request_text import coloured_diff
from agent.ui.result_text import as_text, diffs_in
from agent.ui.text import one_line
from agent.ui.widgets.menu import Choice


async def new(host: Host, _argument: str) -> None:
    facts = host.facts
    await host.reopen(Opening(profile=facts.profile if facts else "", mode=facts.mode if facts else None))


async def resume(host: Host, argument: str) -> None:
    """Looks up first what is to go on: the open session is closed only for one that is there."""
    present = host.facts.session_id if host.facts else ""
    name = argument or await _picked_session(host, present)
    if name:
        found = await host.service("resumable", name=name, present=present)
        await host.reopen(Opening(resume=str(found)))


async def _picked_session(host: Host, present: str) -> str:
    choices = [one for one in session_choices(await host.service("sessions")) if one.value != present]
    if not choices:
        host.tell("No earlier session of this folder is recorded.")
        return ""
    chosen = await host.pick("Resume a session", choices)
    return chosen.value if chosen is not None else ""


def session_choices(rows: Any) -> list[Choice]:
    """Choices of what the service `sessions` answers: rows with an id, and whatever else is known."""
    choices = []
    for row in rows or ():
        found = row if isinstance(row, Mapping) else {name: getattr(row, name, "") for name in _ROW}
        identity = str(found.get("id") or "")
        if not identity:
            continue
        title = one_line(str(found.get("title") or found.get("task") or identity), 70)
        when = _by_the_wall_clock(str(found.get("started") or ""))
        choices.append(Choice(identity, title, when))
    return choices


_ROW = ("id", "title", "task", "started")


def _by_the_wall_clock(stamp: str) -> str:
    """An ISO time as the clock of this machine shows it; what is no time stays as it is."""
    try:
        return datetime.fromisoformat(stamp).astimezone().strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return one_line(stamp, 40)


async def fork(host: Host, _argument: str) -> None:
    if host.facts is None:
        raise UsageError("there is no session to fork yet")
    await host.reopen(Opening(resume=host.facts.session_id, fork=True))


async def undo(host: Host, _argument: str) -> None:
    host.tell(taken_back(await host.service("undo")))


async def redo(host: Host, _argument: str) -> None:
    host.tell(brought_back(await host.service("redo")))


async def diff(host: Host, _argument: str) -> None:
    result = await host.service("diff")
    diffs = diffs_in(result)
    text = "" if diffs else as_text(result)
    if diffs:
        host.show_diffs("Changes of this session", diffs)
    elif text and text != "nothing":
        host.show_page("Changes of this session", coloured_diff(text))
    else:
        host.tell("This session changed no file.")


async def compact(host: Host, argument: str) -> None:
    """The session says when it cannot."""
    try:
        done = as_text(await host.service("compact", instruction=argument))
    except InterruptedRunError:
        return  # what was wanted; the conversation says that nothing was summed up
    host.tell(done or "The conversation is shorter now.")


async def btw(host: Host, argument: str) -> None:
    """Its card in the conversation shows the answer as it comes."""
    await host.service("btw", question=argument)


async def context(host: Host, _argument: str) -> None:
    host.show_page("What fills the context", context_text(await host.service("context")))


async def export(host: Host, argument: str) -> None:
    session = host.facts.session_id if host.facts else ""
    host.tell(as_text(await host.service("export", path=argument, session=session)) or "Exported.")


async def copy(host: Host, _argument: str) -> None:
    if not host.last_reply:
        host.tell("There is no reply to copy yet.")
        return
    how = host.copy(host.last_reply)
    if how:
        host.tell(f"Copied the last reply ({len(host.last_reply):,} characters), {how}.")
    else:
        host.tell("It cannot be copied from here; /export writes the session to a file.", "warning")


async def plan(host: Host, _argument: str) -> None:
    if host.plan:
        host.show_page(f"Plan, {done_count(host.plan)} of {len(host.plan)} steps done", plan_text(host.plan))
    else:
        host.tell("There is no plan yet. In plan mode (Shift+Tab) the model answers with one.")


async def init(host: Host, _argument: str) -> None:
    host.ask_model(str(await host.service("init")))


COMMANDS = (
    Command(
        name="new",
        summary="begin a new session",
        run=new,
        help="With the same profile and mode. This one stays recorded, and /resume goes back to it.",
        aliases=("clear",),
    ),
    Command(
        name="resume",
        summary="go on with an earlier session",
        run=resume,
        takes="[id]",
        help="Without an id it shows the sessions of this folder to choose from.",
    ),
    Command(
        name="fork",
        summary="go on in a copy of this session",
        run=fork,
        help="This session stays as it is, and /resume goes back to it.",
    ),
    Command(
        name="undo",
        summary="take back what the last turn changed in files",
        run=undo,
        help="What commands did too. Once more takes back the turn before it.\n"
        "/redo brings it back. /rewind also goes back in the conversation.",
    ),
    Command(
        name="redo",
        summary="bring back what was undone",
        run=redo,
        help="What /undo or /rewind took back last in files, then what was undone before.",
    ),
    Command(
        name="diff",
        summary="show what this session changed",
        run=diff,
        help="Against the files as they were before its first change.",
    ),
    Command(
        name="compact",
        summary="make the conversation shorter",
        run=compact,
        takes="[what to keep]",
        help="The model sums up what was said. The next request reads the short text from the start.",
    ),
    Command(
        name="btw",
        summary="ask something beside the work",
        run=btw,
        takes="question",
        help="The model answers from what it has read. Question and answer stay out of the conversation.",
        aliases=("aside",),
    ),
    Command(
        name="context",
        summary="what fills the context, in tokens and seconds",
        run=context,
        help="A bar, a table by kind, and how long reading all of it anew takes on this machine.",
    ),
    Command(
        name="export",
        summary="write the session to a file",
        run=export,
        takes="[path]",
        help="The ending chooses the form: .md, .html or .json. What looks like a key is left out.",
        aliases=("save",),
    ),
    Command(
        name="copy",
        summary="copy the last reply",
        run=copy,
        help="By OSC 52 through the terminal; on this machine also by its clipboard program.",
    ),
    Command(
        name="plan",
        summary="the model's plan, and how far it is",
        run=plan,
        aliases=("todo",),
        help="The last checklist that the model wrote; a step that it writes with [x] is done.",
    ),
    Command(
        name="init",
        summary="have AGENTS.md written for this repository",
        run=init,
        help="The model looks around and writes it, and asks as for any other file.",
    ),
)
