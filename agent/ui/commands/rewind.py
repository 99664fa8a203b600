"""Going back to before an earlier message: in the conversation, in the files, or in both."""

from typing import Any

from agent.core.errors import UsageError
from agent.ui.commands.command import Command, Host
from agent.ui.text import one_line
from agent.ui.widgets.menu import Choice

_NO_REWIND = "This session cannot go back yet; /undo takes back what it changed in files."
_MOST_NAMES = 3


async def rewind(host: Host, _argument: str) -> None:
    try:
        points = list(await host.service("rewind_points"))
    except UsageError:
        host.tell(_NO_REWIND)
        return
    if not points:
        host.tell("There is no message to go back to yet.")
        return
    by_turn = {str(point.turn): point for point in points}
    choices = [
        Choice(turn, one_line(point.first_line, 60), _changed(point)) for turn, point in by_turn.items()
    ]
    chosen = await host.pick("Go back to before which message?", choices[::-1])
    if chosen is None:
        return
    point = by_turn[chosen.value]
    what = await host.pick("What goes back?", _ways(point, points))
    if what is not None:
        await _go_back(host, point.turn, what.value)


def _changed(point: Any) -> str:
    names = [one_line(name, 40) for name in point.changed]
    if not names:
        return f"turn {point.turn}"
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"turn {point.turn}, changed {', '.join(names[:_MOST_NAMES])}{more}"


def _ways(point: Any, points: list[Any]) -> list[Choice]:
    later = [one for one in points if one.turn >= point.turn]
    files = list(dict.fromkeys(name for one in later for name in one.changed))
    number = f"{len(files)} file{'' if len(files) == 1 else 's'}"
    can_go_back = getattr(point, "chat", True)
    ways = []
    if can_go_back and files:
        ways.append(Choice("both", "Conversation and files", f"{number}, as before that message"))
    if can_go_back:
        ways.append(Choice("chat", "Only the conversation", "files stay as they are"))
    if files:
        ways.append(Choice("files", "Only the files", f"{number}; the conversation stays"))
    return [*ways, Choice("", "Stay here")]


async def _go_back(host: Host, turn: int, what: str) -> None:
    if not what:
        return
    result = await host.service("rewind", to_turn=turn, what=what)
    if what != "files":
        await host.redraw()
        host.give_back(str(getattr(result, "prompt", "")))


COMMANDS = (
    Command(
        name="rewind",
        summary="go back to before an earlier message",
        run=rewind,
        help="The conversation, the files, or both. The message comes back into the input.",
        aliases=("back",),
    ),
)
