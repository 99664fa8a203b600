"""Cuts the output of a check down to what helps to mend the code: the failing assertions.

On a local model every line of it is waiting time, and passing tests only distract.
"""

import re

MAX_CHARACTERS = 1800
MAX_FAILURES = 3
_NOTE_CHARACTERS = 40
_FAILURE_CHARACTERS = 900

# A title as wide as the terminal has one dash on each side; a row of single dashes separates frames.
_PYTEST_HEAD = re.compile(r"^_+ (?!_ )(.+?) _+$")
_PYTEST_LINE = re.compile(r"^\S.*:\d+: ")
_PYTEST_SECTION = re.compile(r"^=+ .* =+$")
_GAP = "\n[…]\n"
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_UNITTEST_RULE = "=" * 70
_UNITTEST_HEAD = re.compile(r"^(FAIL|ERROR): (.+)$")


def digest(output: str) -> str:
    """The failing parts of a test runner's output, else its head and tail."""
    output = _COLOUR.sub("", output)
    lines = output.splitlines()
    failures = _pytest_failures(lines) or _unittest_failures(lines)
    if not failures:
        return _head_and_tail("\n".join(_without_frames_of_the_runner(lines)).strip(), MAX_CHARACTERS)
    first = failures[:MAX_FAILURES]
    limit = min(_FAILURE_CHARACTERS, (MAX_CHARACTERS - _NOTE_CHARACTERS) // len(first))
    shown = [_head_and_tail(failure, limit) for failure in first]
    if len(failures) > MAX_FAILURES:
        shown.append(f"(failures not shown: {len(failures) - MAX_FAILURES})")
    return "\n".join(shown)


def _pytest_failures(lines: list[str]) -> list[str]:
    """One text per failure: its name, the source lines that lead to it, and the `E` lines."""
    failures: list[list[str]] = []
    current: list[str] | None = None
    in_section = False
    for line in lines:
        head = _PYTEST_HEAD.match(line) if in_section else None
        if head:
            title = head.group(1)
            current = [title if title.startswith("ERROR ") else f"FAILED {title}"]
            failures.append(current)
        elif _PYTEST_SECTION.match(line):
            in_section = " FAILURES " in line or " ERRORS " in line
            current = None
        elif current is not None:
            current.append(line)
        elif in_section and _PYTEST_LINE.match(line):  # --tb=line
            failures.append([line])
    return [_essence(failure) for failure in failures]


def _essence(failure: list[str]) -> str:
    """Keeps the marked source lines of a pytest failure; a test of a few lines stays whole."""
    body = [line for line in failure[1:] if line.strip(" _")]
    if len(body) > 14:
        marked = [line for line in body if line.startswith((">", "E"))]
        body = marked or body[-8:]
    return "\n".join([failure[0], *body])


def _unittest_failures(lines: list[str]) -> list[str]:
    failures: list[list[str]] = []
    current: list[str] | None = None
    for position, line in enumerate(lines):
        following = lines[position + 1] if position + 1 < len(lines) else ""
        if line == _UNITTEST_RULE and _UNITTEST_HEAD.match(following):
            current = []
            failures.append(current)
        elif line.startswith("Ran ") and " test" in line:
            current = None
        elif current is not None and line.strip("-") != "":
            current.append(line)
    return ["\n".join(_without_frames_of_the_runner(failure)) for failure in failures]


def _without_frames_of_the_runner(failure: list[str]) -> list[str]:
    kept: list[str] = []
    in_runner = False
    for line in failure:
        if line.startswith("  File "):
            in_runner = "/unittest/" in line or '"<frozen ' in line
        elif not line.startswith("    "):
            in_runner = False
        if not in_runner and not line.startswith("Traceback (most"):
            kept.append(line)
    return kept


def _head_and_tail(text: str, limit: int) -> str:
    """At most `limit` characters, of whole lines where they are not very long."""
    if len(text) <= limit:
        return text
    room = limit - len(_GAP)
    head, tail = text[: room // 3], text[-(room * 2 // 3) :]
    whole_head, _, rest = head.rpartition("\n")
    first, _, whole_tail = tail.partition("\n")
    head = whole_head if len(rest) < len(head) // 2 else head
    tail = whole_tail if len(first) < len(tail) // 2 else tail
    return f"{head}{_GAP}{tail}"
