"""A tool call: what is done, how it stands, what it says, and what it changed."""

import re
from collections.abc import Mapping
from typing import Any, Literal

from rich.cells import cell_len

from agent.core.events import ASIDE_TOOL, OWN_CALL, ToolFinished
from agent.core.tool import FileDiff
from agent.ui.conversation import diffs
from agent.ui.conversation.block import MARGIN, Block
from agent.ui.conversation.line import Line, Span, wrap_cells
from agent.ui.conversation.notes import folded_rows
from agent.ui.conversation.telling import telling_argument
from agent.ui.conversation.text import one_line, pieces, shown
from agent.ui.text import duration

CardState = Literal["running", "waiting", "ok", "error", "denied", "cancelled"]

FRAME_SECONDS = 0.125
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_SIGNS = {
    "waiting": ("◆", "attention"),
    "ok": ("✓", "good"),
    "error": ("✗", "bad"),
    "denied": ("⊘", "bad"),
    "cancelled": ("–", "quiet"),
}
_WORDS = {"waiting": "waits for you", "error": "failed", "denied": "denied", "cancelled": "cancelled"}

_TAIL_ROWS = 8
_TAIL_CHARACTERS = 6000
_KEPT_CHARACTERS = 64_000
_ERROR_ROWS = 6
_DIFF_ROWS = 24
_OWN_ROWS = 20

# What these show while they run is progress; their text says all that it came to.
_TOLD_AT_THE_END = ("bench", ASIDE_TOOL)
# How the text of a command of the person's ends.
_ENDING = re.compile(r"\n?(exit code (\d+)[^\n]*)\s*\Z")
_NO_OUTPUT = "(no output)"


class ToolCard(Block):
    """One call. `seconds` is the time so far, which turns the spinner, or the time that it took."""

    is_foldable = True

    def __init__(self, call_id: str, tool: str, arguments: Mapping[str, Any]) -> None:
        super().__init__()
        self.call_id = call_id
        self.tool = tool
        self.arguments = arguments
        self.state: CardState = "running"
        self.seconds = 0.0
        self.decision = ""
        self.text = ""
        self.diffs: tuple[FileDiff, ...] = ()
        self.is_open = False
        self.is_own = call_id.startswith(OWN_CALL)
        self._ending = ""
        self._output: list[str] = []
        self._output_characters = 0
        self._is_cut = False
        self._changes: list[list[diffs.Change]] | None = None

    @property
    def has_body(self) -> bool:
        is_told = self.state in ("error", "denied") or (self.is_own and bool(self.output().strip()))
        return bool(self.diffs) or self.is_open or is_told

    def add_output(self, text: str) -> None:
        """Takes live output; of much of it the end is kept."""
        self._output.append(text)
        self._output_characters += len(text)
        if self._output_characters > 2 * _KEPT_CHARACTERS:
            kept = "".join(self._output)[-_KEPT_CHARACTERS:]
            self._output, self._output_characters, self._is_cut = [kept], len(kept), True

    def finish(self, event: ToolFinished) -> None:
        self.state = event.outcome
        self.seconds = event.seconds
        self.decision = event.decision
        self.text = event.text
        self.diffs = event.diffs
        self._changes = None
        if self.is_own and self.tool in _TOLD_AT_THE_END:
            self._output = []
        ending = _ENDING.search(event.text) if self.is_own else None
        if ending is not None:
            self.text = event.text[: ending.start()]
            # The tool did its work when the command ran; for the person it is the command that counts.
            if ending[2] != "0" and self.state == "ok":
                self.state, self._ending = "error", ending[1]
        if self.is_own and self.text.strip() == _NO_OUTPUT:
            self.text = ""

    def toggle(self) -> bool:
        self.is_open = not self.is_open
        return True

    def output(self) -> str:
        """What it printed, or what the model was told where nothing was printed."""
        text = "".join(self._output)
        if not text.strip():
            return self.text
        return f"… earlier output left out\n{text}" if self._is_cut else text

    def copy_text(self) -> str:
        return self.output() or telling_argument(self.arguments)

    def estimate(self, width: int) -> int:
        rows = 1 + self.gap
        if self.is_open:
            rows += self.output().count("\n") + 1
        elif self.is_own:
            rows += min(self.output().count("\n") + 1, _OWN_ROWS + 1)
        elif self.state in ("error", "denied"):
            rows += min(self.text.count("\n") + 1, _ERROR_ROWS + 1)
        return rows + len(self.diffs) * (_DIFF_ROWS // 2)

    def render(self, width: int) -> list[Line]:
        lines = [self._head(width)]
        if self.is_open and self.decision:
            lines.append(Line(((f"{MARGIN}  {one_line(self.decision, width - 6)}", "quiet"),)))
        if self.state == "running":
            return [*lines, *self._tail(width)]
        lines.extend(self._diff_rows(width))
        if self.is_open:
            return [*lines, *folded_rows(self.output(), width, 0, is_open=True)]
        if self.is_own:
            lines.extend(folded_rows(self.output(), width, _OWN_ROWS, is_open=False))
        elif self.state in ("error", "denied"):
            lines.extend(folded_rows(self.text or self.decision, width, _ERROR_ROWS, is_open=False))
        return lines

    def _head(self, width: int) -> Line:
        sign, style = _SIGNS.get(self.state) or (
            SPINNER[int(self.seconds / FRAME_SECONDS) % len(SPINNER)],
            "active",
        )
        figures = self._figures()
        tool = shown(self.tool)
        room = width - len(MARGIN) - cell_len(tool) - cell_len(figures) - 8
        argument = one_line(telling_argument(self.arguments), max(room, 10))
        spans: list[Span] = [(f"{MARGIN}", ""), (f"{sign} ", style), (tool, "tool")]
        if argument:
            spans.append((f"  {argument}", ""))
        if figures:
            spans.append((f"  {figures}", "attention" if self.state == "waiting" else "quiet"))
        return Line(spans)

    def _figures(self) -> str:
        parts: list[str] = []
        if self.state in _WORDS:
            parts.append(self._ending or _WORDS[self.state])
        if self.seconds >= 1 and self.state != "waiting":
            parts.append(duration(self.seconds))
        elif self.seconds >= 0.05 and self.state not in ("running", "waiting"):
            parts.append(f"{self.seconds:.1f} s")
        if self.state == "ok" and not (self.diffs or self.is_open or self.is_own):
            lines = self.output().rstrip().count("\n") + 1 if self.output().strip() else 0
            parts.extend([f"{lines} lines"] if lines > 1 else [])
        added, removed = self._counts()
        if added or removed:
            parts.append(f"+{added} −{removed}")
        return " · ".join(parts)

    def _counts(self) -> tuple[int, int]:
        counts = [diffs.count_of(rows) for rows in self._all_changes()]
        return sum(added for added, _ in counts), sum(removed for _, removed in counts)

    def _all_changes(self) -> list[list[diffs.Change]]:
        if self._changes is None:
            self._changes = [diffs.changes(diff) for diff in self.diffs]
        return self._changes

    def _tail(self, width: int) -> list[Line]:
        """The last rows of what it prints, at a cost that does not depend on how much it printed."""
        size, kept = 0, []
        for chunk in reversed(self._output):
            kept.append(chunk)
            size += len(chunk)
            if size >= _TAIL_CHARACTERS:
                break
        text = "".join(reversed(kept))[-_TAIL_CHARACTERS:].rstrip("\n")
        bar: list[Span] = [(f"{MARGIN}  ", ""), ("│ ", "faint")]
        rows: list[Line] = []
        for line in text.split("\n")[-_TAIL_ROWS:] if text else []:
            for part in pieces(line):
                rows.extend(wrap_cells([(shown(part), "soft")], width - 1, bar, bar))
        return rows[-_TAIL_ROWS:]

    def _diff_rows(self, width: int) -> list[Line]:
        lines: list[Line] = []
        for diff, rows in zip(self.diffs, self._all_changes(), strict=True):
            if len(self.diffs) > 1 or diff.path not in telling_argument(self.arguments):
                lines.append(Line(((f"{MARGIN}  {one_line(diffs.title(diff), width - 6)}", "quiet"),)))
            few = rows if self.is_open or len(rows) <= _DIFF_ROWS else rows[: _DIFF_ROWS - 4]
            lines.extend(diffs.drawn(diff, few, width))
            if len(few) < len(rows):
                lines.append(Line(((f"{MARGIN}  … {len(rows) - len(few)} more rows", "quiet"),)))
        return lines
