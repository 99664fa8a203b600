"""What a person is shown of a call that waits for permission: what it will do, and nothing twice."""

import difflib
from collections.abc import Iterable, Iterator

from textual.content import Content

from agent.core.events import ApprovalRequest
from agent.core.tool import FileDiff
from agent.ui.conversation.text import visible
from agent.ui.text import one_line

MOST_LINES = 400
MOST_PAGE_LINES = 5000
MOST_CHARACTERS = 20_000


def heading(request: ApprovalRequest, behind: int) -> Content:
    """The tool, why it asks, and how many requests wait behind this one."""
    tool = one_line(request.tool, 40)
    more = f"   {behind} more wait" if behind else ""
    return Content.assemble(
        ("? ", "bold $text-warning"),
        (f"May I {_verb(tool)}?", "bold"),
        (f"  {one_line(request.reason, 300)}" if request.reason else "", "$quiet"),
        (more, "$text-accent"),
    )


def described(request: ApprovalRequest) -> Content:
    """The diff, else the commands, else the arguments."""
    if request.diffs:
        return diff_text(request.diffs)
    lines: list[Content] = []
    written = str(request.arguments.get("command", ""))
    if request.commands:
        lines += [_command(command) for command in request.commands]
    if written and not _says_the_same(written, request.commands):
        title = [Content.styled("as written:", "$quiet")] if request.commands else []
        lines += [*title, *(_command(line, mark="  ") for line in _clipped(written))]
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


def _says_the_same(written: str, commands: tuple[str, ...]) -> bool:
    return len(commands) == 1 and written.strip() == commands[0].strip()


def _command(text: str, mark: str = "$ ") -> Content:
    return Content.assemble((mark, "$quiet"), visible(text))


def _clipped(text: str) -> list[str]:
    lines = visible(text[:MOST_CHARACTERS]).split("\n")
    cut = len(lines) > MOST_LINES or len(text) > MOST_CHARACTERS
    return [*lines[:MOST_LINES], *(["… more is not shown"] if cut else [])]


def _diff_lines(diff: FileDiff) -> Iterator[Content]:
    label = "new file" if diff.before is None else "deleted" if diff.after is None else "changed"
    yield Content.assemble((one_line(diff.path), "bold"), (f"  {label}", "$quiet"))
    before, after = (diff.before or "").splitlines(), (diff.after or "").splitlines()
    lines = difflib.unified_diff(before, after, lineterm="", n=3)
    for number, line in enumerate(lines):
        if number < 2:  # the names of both sides, which are in the title
            continue
        if number > MOST_LINES:
            yield Content.styled("… more is not shown", "$quiet")
            return
        style = {"+": "$text-success", "-": "$text-error", "@": "$quiet"}.get(line[:1], "")
        yield Content.styled(visible(line), style)
