"""Removing what models copy along with a file's text."""

import re
from pathlib import PurePath

_NUMBERED = re.compile(r"\s*(\d+)(?:\t|: ?| ?\| ?)")
_FIRST_OF_READ = re.compile(r"1\t.*\n2\t")
_FENCE = re.compile(r"`{3,}[\w+#.-]*\s*")
_NUMBERED_FILES = frozenset({"", ".csv", ".dat", ".tab", ".tsv", ".txt"})
_FENCED_FILES = frozenset({"", ".adoc", ".markdown", ".md", ".mdx", ".rst", ".txt"})


def without_line_numbers(text: str) -> str | None:
    """The text without the line numbers that `read` and `search` print, `None` if it has none.

    Every line must be numbered, without a gap; a single line only counts with a tab after the number.
    """
    ends_with_newline = text.endswith("\n")
    lines = text.removesuffix("\n").split("\n")
    matches = [_NUMBERED.match(line) for line in lines]
    numbers = [int(match[1]) for match in matches if match]
    if len(numbers) < len(lines) or numbers != list(range(numbers[0], numbers[0] + len(lines))):
        return None
    if len(lines) == 1 and "\t" not in lines[0][: matches[0].end() if matches[0] else 0]:
        return None
    plain = [line[match.end() :] for line, match in zip(lines, matches, strict=True) if match]
    return "\n".join(plain) + ("\n" if ends_with_newline else "")


def cleaned_content(path: PurePath, content: str) -> tuple[str, str]:
    """Content for a new file without a Markdown fence or line numbers around it.

    Returns:
        The content, and what was removed (empty if nothing was), to be told to the model. Files in
        which fences or numbered lines are normal are left as they are.
    """
    suffix = path.suffix.lower()
    if suffix not in _FENCED_FILES:
        first, _, rest = content.strip("\n").partition("\n")
        body, _, last = rest.rstrip().rpartition("\n")
        if _FENCE.fullmatch(first) and last.strip() == "```":
            return f"{body}\n", "the ``` lines around the content"
    if suffix not in _NUMBERED_FILES and content.count("\n") >= 2 and _FIRST_OF_READ.match(content):
        plain = without_line_numbers(content)
        if plain is not None:
            return plain, "the line numbers"
    return content, ""
