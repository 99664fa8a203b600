"""A task as a person writes it: Markdown, with optional front matter."""

import math
import re
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from agent.core.errors import UsageError
from agent.core.likeness import did_you_mean

MAX_TASK_BYTES = 200_000

# Endings of what people name by mistake for "work on this file". Nobody writes a task in any of these.
_SOURCE_ENDINGS = """bash bat c cc cfg cjs clj cmd cpp cs css csv cxx dart diff ex exs fish go h hpp hs
htm html ini ipynb java jl js json jsonl jsx kt kts lock log lua m mjs ml patch php
pl ps1 py pyi r rb rs scala scss sh sql svelte svg swift toml ts tsx vue xml yaml yml
zig zsh"""
_TEXT_ENDINGS = ("", ".md", ".markdown", ".mdx", ".txt", ".text", ".rst", ".adoc", ".org")


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """`text` is the request. The rest comes from the front matter; `None` and `()` mean not given.

    `check` is a shell command that has to pass. `allow` and `deny` are permission rules, `protect` lists
    globs of files that must not be changed. Times are in seconds.
    """

    text: str
    profile: str | None = None
    check: str | None = None
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    protect: tuple[str, ...] = ()
    max_steps: int | None = None
    max_tool_calls: int | None = None
    max_seconds: float | None = None


def read_task_file(path: Path) -> Task:
    """Raises UsageError where the file is missing, empty, binary, too long, a source file or has a wrong
    front matter."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_TASK_BYTES + 1)  # a device has no end
    except FileNotFoundError:
        hint = "give a Markdown file, - for standard input, or -p 'what to do'"
        raise UsageError(f"there is no task file {path}", hint) from None
    except IsADirectoryError:
        raise UsageError(f"{path} is a folder, not a task file", "name the Markdown file in it") from None
    except OSError as error:
        raise UsageError(f"cannot read the task file {path}: {error.strerror}") from None
    if _is_source(path, raw):
        raise UsageError(
            f"{path} is a source file, not a task",
            f'say what is to be done with it: agent run -p "Explain {path}"; '
            f"a task is a Markdown file (rename it to .md, or pipe it: agent run - < {quote(str(path))})",
        )
    return parse_task(raw, str(path))


def _is_source(path: Path, raw: bytes) -> bool:
    """By its ending, or by a first line that names a program to run it. Front matter makes it a task."""
    ending = path.suffix.lower()
    if ending in _TEXT_ENDINGS or raw.removeprefix(b"\xef\xbb\xbf").startswith(b"---"):
        return False
    return ending[1:] in _SOURCE_ENDINGS.split() or raw.startswith((b"#!/", b"#! /"))


def parse_task(raw: bytes, source: str) -> Task:
    """Reads the bytes of a task; `source` is named in errors. Raises UsageError."""
    if len(raw) > MAX_TASK_BYTES:
        hint = "put long material into files of the repository and name them in the task"
        raise UsageError(f"{source} is too long, a task may have {MAX_TASK_BYTES:,} bytes", hint)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise UsageError(f"{source} is not a text file", "a task is Markdown in UTF-8")
    matter, body = _split(text.replace("\r\n", "\n"), source)
    if not body.strip():
        raise UsageError(f"{source} has no task in it", "write what is to be done, in plain words")
    return Task(text=body.strip(), **_checked(matter, source))


def _split(text: str, source: str) -> tuple[dict[str, Any], str]:
    """The front matter, which stands between two lines of three dashes at the very top, and the rest."""
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        return {}, text
    end = next((number for number, line in enumerate(lines) if number and line.rstrip() == "---"), None)
    if end is None:
        raise UsageError(f"{source}: the front matter is not closed", "end it with a line of three dashes")
    return _read_matter("\n".join(lines[1:end]), source), "\n".join(lines[end + 1 :])


def _read_matter(head: str, source: str) -> dict[str, Any]:
    import yaml

    try:
        matter = yaml.safe_load(head)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 2}" if mark else ""
        problem = getattr(error, "problem", None) or "cannot be read"
        raise UsageError(f"{source}{line}: the front matter is no YAML: {problem}", _MATTER_HINT) from None
    except (ValueError, RecursionError):
        # A date such as 2026-13-45, or brackets without end.
        raise UsageError(f"{source}: the front matter has a value that is no YAML", _MATTER_HINT) from None
    if matter is None:
        return {}
    if not isinstance(matter, dict):
        raise UsageError(f"{source}: the front matter has to be lines of `key: value`", _MATTER_HINT)
    return matter


_MATTER_HINT = "write one `key: value` a line, and a value with signs such as : or # in it in quotes"
_CHECK_HINT = "name a command, such as `check: python -m pytest -q`, or leave the line out"


def _checked(matter: dict[str, Any], source: str) -> dict[str, Any]:
    readers = {
        "profile": _text,
        "check": _text,
        "allow": _texts,
        "deny": _texts,
        "protect": _texts,
        "max_steps": _positive_integer,
        "max_tool_calls": _positive_integer,
        "max_seconds": _positive_number,
    }
    values: dict[str, Any] = {}
    for key, value in matter.items():
        reader = readers.get(key)
        if reader is None:
            hint = did_you_mean(str(key), readers, f"the keys are {', '.join(readers)}")
            raise UsageError(f"{source}: unknown key {key!r} in the front matter", hint)
        try:
            values[key] = reader(value)
        except ValueError as error:
            hint = _CHECK_HINT if key == "check" else ""
            if reader is _text and isinstance(
                value, bool | int | float
            ):  # the shell knows a `true`, YAML another
                hint = f'in quotes it is a text: `{key}: "{str(value).lower()}"`'
            raise UsageError(f"{source}: {key} in the front matter has to be {error}", hint) from None
    return values


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("a text")
    return value.strip()


def _texts(value: Any) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(item, str) and item.strip() for item in items):
        raise ValueError("a list of texts")
    return tuple(items)


def _positive_integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError("a whole number of at least 1")
    return value


def _positive_number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError("a number above 0")
    return float(value)


# "Add a function to a.py and a test for it", but not "add a function so that the tests pass".
_ASKS_FOR_TESTS = re.compile(
    r"\b(?:add|write|create|extend|update|adapt|include)\w*\b"
    r"(?:(?!\b(?:so|until|that|make|makes|pass|see)\b)(?:[^.;:\n]|\.(?=\w))){0,100}?"
    r"\btests?\b(?!\s+(?:pass|succeed|are|is|in)\b)"
    r"|\brenam",
    re.IGNORECASE,
)
# "Leave `accept.py` as it is", "do not touch a.py or b.py".
_LEAVES_ALONE = re.compile(
    r"\b(?:leave|keep)\b.*\b(?:as (?:it is|they are)|alone|unchanged|untouched)\b"
    r"|\b(?:do not|don't|never|must not|without)\s+(?:chang|touch|modif|edit|rewrit)",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n{2,}")
_FILE_NAME = re.compile(r"[\w.-]+(?:/[\w.-]+)*\.[A-Za-z]\w{0,8}\b")
_LINE_BREAK_IN_PARAGRAPH = re.compile(r"(?<!\n)\n(?!\n)")
_TEST_FILES = ("**/test_*", "**/*_test.*", "**/*.test.*", "**/*.spec.*", "**/tests/**", "**/test/**")


def protected_globs(task: Task) -> tuple[str, ...]:
    """Files that the run must not change: what `protect` lists, else the existing tests.

    A weak model makes a failing test pass by rewriting it. So with a `check`, tests are only open to
    changes if the task asks for tests, or if `protect` says what is protected instead. A file that the
    task wants left alone is protected in any case.
    """
    text = _LINE_BREAK_IN_PARAGRAPH.sub(" ", task.text)
    left_alone = tuple(
        name
        for sentence in _SENTENCE_END.split(text)
        if _LEAVES_ALONE.search(sentence)
        for name in _FILE_NAME.findall(sentence)
    )
    if task.protect or not task.check:
        return (*task.protect, *left_alone)
    return left_alone if _ASKS_FOR_TESTS.search(text) else (*_TEST_FILES, *left_alone)
