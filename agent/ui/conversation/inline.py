"""Emphasis, code and links inside a paragraph of Markdown, as spans. One pass, nothing is ever lost."""

import re

from agent.ui.conversation.line import Span, styled
from agent.ui.conversation.text import visible

_SPECIAL = re.compile(r"[\\`*_~\[!]")
_LINK = re.compile(r"\[([^\[\]\n]{1,300})\]\(<?([^()\s<>]{1,1000})>?(?:\s+\"[^\"\n]{0,200}\")?\)")
_ESCAPABLE = frozenset("\\`*_{}[]()#+-.!|~<>")
_MARKS = {"***": "strong+emphasis", "___": "strong+emphasis", "**": "strong", "__": "strong", "~~": "struck"}
_MARKS |= {"*": "emphasis", "_": "emphasis"}


def spans_of(text: str, style: str = "") -> list[Span]:
    """`text` as spans. Marks that nothing closes stay as they are written."""
    return _Reader(visible(text)).read(style)


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text

    def read(self, style: str) -> list[Span]:
        spans: list[Span] = []
        self._read(0, len(self._text), style, spans, depth=0)
        return spans

    def _read(self, start: int, end: int, style: str, spans: list[Span], depth: int) -> None:
        text = self._text
        plain_from = at = start
        while True:
            found = _SPECIAL.search(text, at, end)
            if found is None:
                break
            begin = found.start()
            taken = self._special(begin, end, style, depth)
            if taken is None:
                at = begin + (len(text[begin:end]) - len(text[begin:end].lstrip(text[begin])) or 1)
                continue
            after, inner = taken
            if begin > plain_from:
                spans.append((text[plain_from:begin], style))
            spans.extend(inner)
            plain_from = at = after
        if end > plain_from:
            spans.append((text[plain_from:end], style))

    def _special(self, begin: int, end: int, style: str, depth: int) -> tuple[int, list[Span]] | None:
        """What stands at `begin`: where it ends and its spans, or None for plain text."""
        character = self._text[begin]
        if character == "\\":
            following = self._text[begin + 1 : begin + 2]
            return (begin + 2, [(following, style)]) if following in _ESCAPABLE and following else None
        if character == "`":
            return self._code(begin, end, style)
        if character == "!":
            return self._link(begin + 1, end, style) if self._text.startswith("![", begin) else None
        if character == "[":
            return self._link(begin, end, style)
        return self._emphasis(begin, end, style, depth) if depth < 4 else None

    def _code(self, begin: int, end: int, style: str) -> tuple[int, list[Span]] | None:
        ticks = re.compile("`+").match(self._text, begin)
        if ticks is None:
            return None
        mark = ticks.group()
        close = self._text.find(mark, ticks.end(), end)
        if close < 0:
            return None
        while self._text.startswith("`", close + len(mark)) and close + len(mark) < end:
            close += 1
        inside = self._text[ticks.end() : close].replace("\n", " ")
        if len(inside) > 2 and inside[0] == inside[-1] == " " and inside.strip():
            inside = inside[1:-1]
        return (close + len(mark), [(inside, styled(style, "code"))]) if inside else None

    def _link(self, begin: int, end: int, style: str) -> tuple[int, list[Span]] | None:
        """The address is written out: what a link leads to must not hide behind its words."""
        found = _LINK.match(self._text, begin, end)
        if found is None:
            return None
        words, address = found.groups()
        inner = spans_of(words, styled(style, "link"))
        if address not in (words, f"https://{words}", f"http://{words}", f"mailto:{words}"):
            inner.append((f" ({address})", styled(style, "quiet")))
        return found.end(), inner

    def _emphasis(self, begin: int, end: int, style: str, depth: int) -> tuple[int, list[Span]] | None:
        text = self._text
        for size in (3, 2, 1):
            mark = text[begin : begin + size]
            if mark not in _MARKS or len(mark) != size:
                continue
            close = self._closing(mark, begin + size, end)
            if close < 0:
                continue
            inner: list[Span] = []
            self._read(begin + size, close, styled(style, _MARKS[mark]), inner, depth + 1)
            return close + size, inner
        return None

    def _closing(self, mark: str, start: int, end: int) -> int:
        text = self._text
        if start >= end or text[start].isspace():
            return -1
        if mark[0] == "_" and start > len(mark) and _is_word(text[start - len(mark) - 1]):
            return -1
        at = text.find(mark, start + 1, end)
        while at >= 0:
            after = text[at + len(mark) : at + len(mark) + 1]
            longer = after == mark[0] and len(mark) < 3
            inside_word = mark[0] == "_" and bool(after) and _is_word(after)
            if not text[at - 1].isspace() and not inside_word and not longer and text[at - 1] != "\\":
                return at
            at = text.find(mark, at + (len(mark) + 1 if longer else 1), end)
        return -1


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
