"""Which lines of a file the model still has in front of it, so that `read` need not repeat them.

It is looked up in the conversation itself, not remembered: what was summed up, taken back or cut short is not
there any more, and what changed does not look the same.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from agent.core.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from tools.read import AS_ABOVE

_ATTACHED = re.compile(
    r"^(?P<path>[^\n]+?)(?:, lines \d+-\d*)?:\n(?P<fence>`{3,})\n(?P<content>.*?)\n(?P=fence)$", re.M | re.S
)
_NUMBERED = re.compile(r"(\d+)\t(.*)", re.S)
_ONLY_LOOKS = ("read", "search", "glob", "outline")

Lines = Mapping[int, str]


def is_in_view(messages: Sequence[Message], workspace: Path, name: str, text: str) -> bool:
    """Whether every line of `text`, a result of `read` for the file `name`, was shown before and still holds.

    False after a change that was tried since, and where the last answer was already that nothing changed: a
    model that asks again did not find it.
    """
    wanted = _lines_of(text)
    if not wanted:
        return False
    for shown in _shown_backwards(messages, workspace, name):
        if shown is None:
            return False
        if all(shown.get(number) == line for number, line in wanted.items()):
            return True
        if shown.keys() & wanted.keys():
            return False  # an older text of the same lines would have to be told from this one
    return False


def _shown_backwards(messages: Sequence[Message], workspace: Path, name: str) -> Iterator[Lines | None]:
    """What was shown of the file, the latest first; None where nothing before that counts."""
    calls = {
        call.id: call
        for message in messages
        if isinstance(message, AssistantMessage)
        for call in message.tool_calls
    }
    wanted = _plain(name, workspace)
    for message in reversed(messages):
        if isinstance(message, UserMessage):
            for match in _ATTACHED.finditer(message.text):
                if _plain(match["path"], workspace) == wanted:
                    yield _lines_of(match["content"])
        elif isinstance(message, ToolMessage):
            call = calls.get(message.call_id)
            if call is None or _path_of(call, workspace) != wanted:
                continue
            if call.name not in _ONLY_LOOKS or message.text.endswith(AS_ABOVE):
                yield None
            elif call.name == "read" and not message.is_error:
                yield _lines_of(message.text)


def _path_of(call: ToolCall, workspace: Path) -> str:
    path = call.arguments.get("path")
    return _plain(path, workspace) if isinstance(path, str) else ""


def _plain(path: str, workspace: Path) -> str:
    path = path.strip().replace("\\", "/")
    return posixpath.normpath(path.removeprefix(f"{workspace.as_posix()}/"))


def _lines_of(text: str) -> Lines:
    matches = (_NUMBERED.fullmatch(line) for line in text.split("\n"))
    return {int(match[1]): match[2] for match in matches if match}
