"""Colours for code, one line at a time: what a line costs does not depend on what stands above it.

Pygments reads whole texts. Its lexers are state machines though, and `LexerContext` hands the state in and
out, so a line is read with the state that the line before it left. Languages whose block comments are one
pattern in Pygments instead of a state need the comment followed by hand.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from agent.ui.conversation.line import Span
from agent.ui.conversation.text import expand_tabs, visible

_COMMENT = "code.comment"
_LONGEST_LINE = 2000  # characters; a longer line is data, and colours would cost more than they tell
_ROOT = ("root",)

# From the most telling to the least; a token's type is tried with all its parents.
_STYLES = (
    ("Token.Comment", _COMMENT),
    ("Token.Literal.String", "code.string"),
    ("Token.Literal.Number", "code.number"),
    ("Token.Keyword.Constant", "code.number"),
    ("Token.Keyword.Type", "code.type"),
    ("Token.Keyword", "code.keyword"),
    ("Token.Operator.Word", "code.keyword"),
    ("Token.Name.Function", "code.function"),
    ("Token.Name.Class", "code.type"),
    ("Token.Name.Exception", "code.type"),
    ("Token.Name.Builtin", "code.builtin"),
    ("Token.Name.Decorator", "code.decorator"),
    ("Token.Name.Tag", "code.keyword"),
    ("Token.Name.Attribute", "code.function"),
    ("Token.Generic.Inserted", "added"),
    ("Token.Generic.Deleted", "removed"),
    ("Token.Generic.Heading", "code.keyword"),
    ("Token.Generic.Subheading", "code.keyword"),
    ("Token.Generic.Prompt", _COMMENT),
)


@cache
def _style_of(token: str) -> str:
    for name, style in _STYLES:
        if token == name or token.startswith(f"{name}."):
            return style
    return ""


@dataclass(frozen=True, slots=True)
class State:
    """What a line leaves for the next one."""

    stack: tuple[str, ...] = _ROOT
    in_comment: bool = False


START = State()


@cache
def _known_names() -> frozenset[str]:
    # Without the look at installed plugins that Pygments makes for an unknown name: it takes long, and it
    # would load what happens to be installed.
    from pygments.lexers import get_all_lexers

    return frozenset(alias for _, aliases, _, _ in get_all_lexers(plugins=False) for alias in aliases)


@cache
def _lexer(language: str) -> Any:
    """The lexer for the word after a fence, None where there is none."""
    name = {"console": "shell-session", "jsonc": "json", "text": ""}.get(language, language)
    if not name or name not in _known_names():
        return None
    from pygments.lexers import get_lexer_by_name

    return get_lexer_by_name(name, stripnl=False, ensurenl=False)


def prepare() -> None:
    """Loads what the most usual language needs, so that nobody waits for it in the middle of a reply."""
    highlight("pass", "python")


def language_of_path(path: str) -> str:
    """The language of a file by its name, empty if unknown."""
    from pygments.lexers import find_lexer_class_for_filename

    found = find_lexer_class_for_filename(path.rsplit("/", 1)[-1])
    return str(found.aliases[0]) if found is not None and found.aliases else ""


def highlight(line: str, language: str, state: State = START) -> tuple[list[Span], State]:
    """One line without its end as spans, and the state for the next one. Never raises for odd code."""
    code = expand_tabs(visible(line))
    lexer = _lexer(language.lower()) if language and len(code) <= _LONGEST_LINE else None
    if lexer is None:
        return ([(code, "")] if code else []), state
    if state.in_comment:
        return _inside_comment(code, lexer, state)
    try:
        stack, spans = _read(code, lexer, state.stack)
    except Exception:
        # A lexer is foreign code that gets whatever a model writes; without colours all is still readable.
        return [(code, "")], START
    if spans and _opens_comment(code, lexer):
        return _before_comment(code, lexer, state)
    return spans, State(stack)


def _read(code: str, lexer: Any, stack: tuple[str, ...]) -> tuple[tuple[str, ...], list[Span]]:
    from pygments.lexer import ExtendedRegexLexer, LexerContext, RegexLexer

    text = f"{code}\n"
    if not isinstance(lexer, RegexLexer) or isinstance(lexer, ExtendedRegexLexer):
        return _ROOT, list(
            _merged((value, str(kind)) for _, kind, value in lexer.get_tokens_unprocessed(text))
        )
    context = LexerContext(text, 0, list(stack))
    # Borrowed for lexers that are not of that class: it reads the same tables, and tells where it ended.
    read: Any = ExtendedRegexLexer.get_tokens_unprocessed
    tokens = read(lexer, text, context)
    spans = list(_merged((value, str(kind)) for _, kind, value in tokens))
    return tuple(context.stack), spans


def _merged(tokens: Iterator[tuple[str, str]]) -> Iterator[Span]:
    before, style = "", ""
    for value, kind in tokens:
        text = value.replace("\n", "")
        if not text:
            continue
        name = _style_of(kind)
        if name == style or text.isspace():
            before += text
            continue
        if before:
            yield before, style
        before, style = text, name
    if before:
        yield before, style


_STRING_OR_COMMENT = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`[^`]*`|//.*|/\*.*?\*/|/\*")


def _opens_comment(code: str, lexer: Any) -> int:
    """Where a block comment begins that does not end on this line, counted from 1; 0 for none."""
    if "/*" not in code or not _has_block_comments(type(lexer)):
        return 0
    for found in _STRING_OR_COMMENT.finditer(code):
        if found.group() == "/*":
            return found.start() + 1
    return 0


@cache
def _has_block_comments(kind: type) -> bool:
    names = {"c", "cpp", "java", "javascript", "typescript", "css", "scss", "go", "csharp", "kotlin", "swift"}
    names |= {"php", "scala", "dart", "sql", "objective-c", "cuda", "glsl"}
    return bool(names.intersection(getattr(kind, "aliases", ())))


def _before_comment(code: str, lexer: Any, state: State) -> tuple[list[Span], State]:
    at = _opens_comment(code, lexer) - 1
    stack, spans = _read(code[:at], lexer, state.stack)
    return [*spans, (code[at:], _COMMENT)], State(stack, in_comment=True)


def _inside_comment(code: str, lexer: Any, state: State) -> tuple[list[Span], State]:
    end = code.find("*/")
    if end < 0:
        return ([(code, _COMMENT)] if code else []), state
    stack, spans = _read(code[end + 2 :], lexer, state.stack)
    return [(code[: end + 2], _COMMENT), *spans], State(stack)
