"""Front matter of Markdown files, read as leniently as other programs do."""

import re
from typing import Any, NamedTuple

_KEY_AND_TEXT = re.compile(r"^(?P<key>[A-Za-z_][\w-]*):[ \t]+(?P<text>[^\s'\"{|>&*!#].*)$")
# `argument-hint: [file] [line]` looks like a list and is none.
_NO_LIST = re.compile(r"\[[^\]]*\][ \t]*\S")


class MatterError(Exception):
    """The front matter cannot be understood; the message is half a sentence for people."""


class Document(NamedTuple):
    """`matter` is empty where there is no front matter; `mended` says that it is no YAML as it stands."""

    matter: dict[str, Any]
    body: str
    mended: bool = False


def split(text: str) -> Document:
    """Front matter and body of a tidy text.

    Raises:
        MatterError: it is not closed, or not YAML.
    """
    lines = text.lstrip("\n").split("\n")
    if lines[0].rstrip() != "---":
        return Document({}, text)
    end = next((at for at, line in enumerate(lines) if at and line.rstrip() in ("---", "...")), None)
    if end is None:
        raise MatterError("the front matter is not closed by a line of three dashes")
    matter, mended = _read("\n".join(lines[1:end]))
    return Document(matter, "\n".join(lines[end + 1 :]).strip("\n"), mended)


def _read(head: str) -> tuple[dict[str, Any], bool]:
    try:
        return _table(_parse(head)), False
    except MatterError:
        # `description: Use this when: ...` is no YAML, and yet many files have it.
        quoted = "\n".join(_with_quotes(line) for line in head.split("\n"))
        if quoted == head:
            raise
        try:
            return _table(_parse(quoted)), True
        except MatterError:
            pass
        raise


def _parse(head: str) -> Any:
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        reader = loader(head)
        try:
            return reader.get_single_data()
        finally:
            reader.dispose()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" (line {mark.line + 2})" if mark else ""
        problem = getattr(error, "problem", None) or "it cannot be read"
        raise MatterError(f"the front matter is no YAML{line}: {problem}") from None
    except (ValueError, RecursionError):
        raise MatterError("the front matter has a value that is no YAML") from None


def _table(found: Any) -> dict[str, Any]:
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise MatterError("the front matter has to be lines of `key: value`")
    return {str(key): value for key, value in found.items()}


def _with_quotes(line: str) -> str:
    found = _KEY_AND_TEXT.match(line)
    if found is None:
        return line
    text = found["text"].rstrip()
    bracket = text.startswith("[")
    if not (_NO_LIST.match(text) if bracket else re.search(r": |:$| #", text)):
        return line
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'{found["key"]}: "{text}"'
