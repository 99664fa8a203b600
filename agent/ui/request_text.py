"""What a person is shown of a call that waits for permission: what it will do, and nothing twice."""

import difflib
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence

from textual.content import Content

from agent.core.events import ApprovalRequest
from agent.core.tool import FileDiff
from agent.ui.conversation.text import visible
from agent.ui.text import one_line

MOST_LINES = 400
MOST_PAGE_LINES = 5000
MOST_CHARACTERS = 20_000
_MOST_BETWEEN = 400
# Signs between commands, plain files to read and write, and plain variables before a command.
_BETWEEN = re.compile(r"(?:[\s;&|()]|\d?(?:>>?|<)(?:&\d|\s*[\w./-]+)|\w+=[\w./:-]*\s)*")


def heading(request: ApprovalRequest, behind: int) -> Content:
    """The tool and where it works, why it asks, and how many requests wait behind this one."""
    tool = one_line(request.tool, 40)
    more = f"   {behind} more wait" if behind else ""
    folder, _, _ = _parts(request)
    where = f" in {one_line(folder, 300)}" if folder else ""
    how = " in the background" if request.arguments.get("background") is True else ""
    return Content.assemble(
        ("? ", "bold $text-warning"),
        (f"May I {_verb(tool)}{where}{how}?", "bold"),
        (f"  {one_line(request.reason, 300)}" if request.reason else "", "$quiet"),
        (more, "$text-accent"),
    )


def described(request: ApprovalRequest) -> Content:
    """The diff, else the command, else the arguments.

    A command is shown as it is written. Where it does not show by itself what that starts, the commands stand
    above it, taken apart.
    """
    if request.diffs:
        return diff_text(request.diffs)
    lines: list[Content] = []
    _, written, commands = _parts(request)
    if written and (_shows_by_itself(written, commands) or (request.tool == "shell" and not commands)):
        first, *others = _clipped(written.strip())
        lines += [_command(first), *(_command(line, mark="  ") for line in others)]
    elif commands:
        lines += [_command(command) for command in commands]
        if written:
            lines.append(Content.styled("as written:", "$quiet"))
            lines += [_command(line, mark="  ") for line in _clipped(written)]
    if lines:
        return Content("\n").join(lines)
    for name, value in request.arguments.items():
        shown = _clipped(str(value))
        lines.append(Content.assemble((f"{one_line(name, 40)}: ", "$quiet"), shown[0] if shown else ""))
        lines += [Content(f"  {line}") for line in shown[1:]]
    return Content("\n").join(lines)


def diff_text(diffs: Iterable[FileDiff]) -> Content:
    """Unified diffs of all files, one below the other."""
    return Content("\n").join(line for diff in diffs for line in _diff_lines(diff))


def coloured_diff(text: str) -> Content:
    """A unified diff that came as text."""
    lines = text.split("\n")
    shown = [Content.styled(visible(line), _style_of(line)) for line in lines[:MOST_PAGE_LINES]]
    if len(lines) > MOST_PAGE_LINES:
        shown.append(Content.styled(f"… {len(lines) - MOST_PAGE_LINES:,} more lines are not shown", "$quiet"))
    return Content("\n").join(shown)


def _style_of(line: str) -> str:
    if line.startswith(("--- ", "+++ ", "diff ")):
        return "bold"
    return {"+": "$text-success", "-": "$text-error", "@": "$quiet"}.get(line[:1], "")


def _verb(tool: str) -> str:
    known = {"shell": "run this", "write": "write this file", "edit": "change this file", "read": "read this"}
    return known.get(tool, f"use {tool}")


def _parts(request: ApprovalRequest) -> tuple[str, str, Sequence[str]]:
    """The folder that a command begins in, empty for the workspace; the command as written; its parts."""
    written, commands = str(request.arguments.get("command", "")), request.commands
    begin, _, rest = written.partition("\n")
    try:
        words = shlex.split(begin)
    except ValueError:
        words = []
    # Only a plain name: what the shell would make something else of is no name of a folder.
    is_folder = len(words) == 2 and rest.strip() and begin == f"cd {shlex.quote(words[1])}"
    if is_folder and commands[:1] == (begin,):
        return words[1], rest, commands[1:]
    return "", written, commands


def _shows_by_itself(written: str, commands: Sequence[str]) -> bool:
    """Whether a line is its commands one after the other, so that taking it apart would say nothing new."""
    rest, before = written, ""
    for command in map(str.strip, commands):
        if before.endswith(f" {command}") and not any(quote in before for quote in "'\"`$"):
            continue  # what `timeout 5 make` starts is there to be seen
        between, found, rest = rest.partition(command)
        if not found or not _is_between(between):
            return False
        before = command
    return _is_between(rest)


def _is_between(text: str) -> bool:
    return len(text) <= _MOST_BETWEEN and _BETWEEN.fullmatch(text) is not None


def _command(text: str, mark: str = "$ ") -> Content:
    return Content.assemble((mark, "$quiet"), visible(text))


def _clipped(text: str) -> list[str]:
    lines = visible(text[:MOST_CHARACTERS]).split("\n")
    cut = len(lines) > MOST_LINES or len(text) > MOST_CHARACTERS
    return [*lines[:MOST_LINES], *(["… more is not shown"] if cut else [])]


def _size(lines: Sequence[str]) -> str:
    """Lines that come and go: the end of a long diff is out of sight when the question is answered."""
    signs = [line[:1] for line in lines]
    counts = (f"{shown}{signs.count(sign)}" for sign, shown in (("+", "+"), ("-", "−")) if sign in signs)
    text = " ".join(counts)
    return f"  {text}" if text else ""


def _diff_lines(diff: FileDiff) -> Iterator[Content]:
    label = "new file" if diff.before is None else "deleted" if diff.after is None else "changed"
    before, after = (diff.before or "").splitlines(), (diff.after or "").splitlines()
    lines = list(difflib.unified_diff(before, after, lineterm="", n=3))
    # Where the first change is stands beside the name: a row less, so that a small terminal shows the change.
    first = f"  {lines[2]}" if lines and label == "changed" else ""
    how = f"  {label}{_size(lines[3:])}{first}"
    yield Content.assemble((one_line(diff.path), "bold"), (how, "$quiet"))
    for number, line in enumerate(lines[3:], 3):
        if number > MOST_LINES:
            yield Content.styled("… more is not shown", "$quiet")
            return
        style = {"+": "$text-success", "-": "$text-error", "@": "$quiet"}.get(line[:1], "")
        yield Content.styled(visible(line), style)
