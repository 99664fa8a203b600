"""Turns the syntax nodes of shell words into `Word`s.

The grammar is forgiving where bash is not, so every literal is checked again here by bash's own quoting
rules; what does not fit raises `UnreadableError` instead of being guessed.
"""

import glob
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agent.permissions.words import Word, names

if TYPE_CHECKING:
    from tree_sitter import Node

WORD_TYPES = names(
    "word number string raw_string ansi_c_string concatenation simple_expansion expansion"
    " command_substitution arithmetic_expansion process_substitution translated_string"
    " brace_expression extglob_pattern regex variable_name special_variable_name test_operator"
)

_UNKNOWN_TYPES = names(
    "simple_expansion expansion command_substitution arithmetic_expansion translated_string"
    " brace_expression extglob_pattern regex"
)

_SIMPLE_ESCAPES = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_ANSI_ESCAPE = re.compile(
    r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|.)", re.DOTALL
)
_METACHARACTERS = frozenset("$`()<>;&|\"' \t\n")
_EXPANDS = re.compile(rb"[({\[A-Za-z_0-9@*#?$!-]")
_BRACES = re.compile(r"\{.*(,|\.\.).*\}", re.DOTALL)

_Char = tuple[str, bool]  # a character and whether it was quoted


class UnreadableError(Exception):
    """The grammar and bash's quoting rules disagree about a piece of text."""


def source_of(node: "Node") -> str:
    return (node.text or b"").decode("utf-8", "surrogateescape")


def word_from(node: "Node") -> Word:
    """The word that `node` stands for.

    Raises:
        UnreadableError: the node's text does not follow bash's quoting rules.
    """
    source = source_of(node)
    if node.type == "process_substitution":
        return Word(None, source, pipe=True)
    chars = _characters(node)
    if chars is None:
        return Word(None, source)
    skeleton = "".join("\0" if quoted else char for char, quoted in chars)
    if _BRACES.search(skeleton) or "=~" in skeleton or ":~" in skeleton:
        return Word(None, source)
    value = "".join(char for char, _ in chars)
    if skeleton.startswith("~"):
        if not re.match(r"~(/|$)", skeleton):
            return Word(None, source)
        home = str(Path.home())
        chars = [(char, True) for char in home] + chars[1:]
        value = home + value[1:]
    if not any(char in "*?[" for char in skeleton):
        return Word(value, source)
    pattern = "".join(glob.escape(char) if quoted else char for char, quoted in chars)
    return Word(value, source, glob=pattern)


def _characters(node: "Node") -> list[_Char] | None:
    """The characters of a word, or None when only the shell knows them."""
    text = source_of(node)
    if node.type in _UNKNOWN_TYPES:
        return None
    if node.type in {"word", "number", "variable_name", "special_variable_name", "test_operator"}:
        return _unquoted(text)
    if node.type == "raw_string":
        if not re.fullmatch(r"'[^']*'", text):
            raise UnreadableError(f"quotes in {text}")
        return [(char, True) for char in text[1:-1]]
    if node.type == "ansi_c_string":
        return _ansi_c(text)
    if node.type == "string":
        return _double_quoted(node)
    if node.type == "concatenation":
        return _concatenation(node)
    raise UnreadableError(f"{node.type} in {text}")


def _concatenation(node: "Node") -> list[_Char] | None:
    parts: list[_Char] = []
    known = True
    position = node.start_byte
    for child in node.children:
        if child.start_byte != position:
            raise UnreadableError(f"a gap in {source_of(node)}")
        position = child.end_byte
        chars = _characters(child)
        if chars is None:
            known = False
        else:
            parts += chars
    return parts if known else None


def _unquoted(text: str) -> list[_Char]:
    if text.startswith("#"):
        raise UnreadableError(f"a comment sign in {text}")
    chars: list[_Char] = []
    position = 0
    while position < len(text):
        char = text[position]
        if char == "\\":
            escaped = text[position + 1 : position + 2]
            if not escaped:
                raise UnreadableError(f"a backslash at the end of {text}")
            if escaped != "\n":
                chars.append((escaped, True))
            position += 2
            continue
        if char in _METACHARACTERS:
            raise UnreadableError(f"{char!r} in {text}")
        chars.append((char, False))
        position += 1
    return chars


def _ansi_c(text: str) -> list[_Char]:
    if not re.fullmatch(r"\$'(?:[^'\\]|\\.)*'", text, re.DOTALL):
        raise UnreadableError(f"quotes in {text}")

    def decode(match: re.Match[str]) -> str:
        code = match.group(1)
        if code in _SIMPLE_ESCAPES:
            return _SIMPLE_ESCAPES[code]
        base = 16 if code[0] in "xuU" else 8 if code[0] in "01234567" else 0
        digits = code[1:] if base == 16 else code
        number = int(digits, base) if base and digits else 0
        if not 0 < number < 0x80:  # NUL ends the word, and bytes above ASCII depend on the locale
            raise UnreadableError(f"\\{code} in {text}")
        return chr(number)

    return [(char, True) for char in _ANSI_ESCAPE.sub(decode, text[2:-1])]


def _double_quoted(node: "Node") -> list[_Char] | None:
    text = source_of(node)
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        raise UnreadableError(f"quotes in {text}")
    children = [child for child in node.children if child.type not in {'"', "string_content"}]
    expansions = [child for child in children if child.type in _UNKNOWN_TYPES]
    shift = node.start_byte
    data = b"\0" * shift + (node.text or b"")
    check_expansions(data, shift + 1, len(data) - 1, expansions, quoted=True)
    if expansions:
        return None
    body = re.sub(
        r"\\([$`\"\\\n])", lambda match: "" if match.group(1) == "\n" else match.group(1), text[1:-1]
    )
    return [(char, True) for char in body]


def check_expansions(
    data: bytes, start: int, end: int, expansions: "Sequence[Node]", *, quoted: bool = False
) -> None:
    """Makes sure that every place where bash would expand something is one of `expansions`.

    Args:
        data: the whole text; `start` and `end` delimit the inside of a double-quoted string or of a
            here-document.
        expansions: the nodes that the grammar took for expansions.
        quoted: whether a double quote would end the text.

    Raises:
        UnreadableError: the grammar missed an expansion or the end of the text.
    """
    ends = {node.start_byte: node.end_byte for node in expansions}
    position = start
    while position < end:
        if position in ends:
            position = ends[position]
            continue
        char = data[position : position + 1]
        if char == b"\\":
            position += 2
            continue
        expands = char == b"`" or (char == b"$" and _EXPANDS.match(data, position + 1, end))
        if expands or (quoted and char == b'"'):
            raise UnreadableError(f"an expansion in {data[start:end].decode('utf-8', 'replace')}")
        position += 1
    if position != end:
        raise UnreadableError(f"the end of {data[start:end].decode('utf-8', 'replace')}")
