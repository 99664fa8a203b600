"""The process that `ui_streaming` measures: an app with a view, an input field and a source of tokens."""

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from textual.app import App, ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Input, Markdown

from agent.core.events import TextDelta
from agent.ui.conversation.view import ConversationView

CHARACTERS_OF_A_TOKEN = 4
STEP_SECONDS = 0.005
SETTLING_SECONDS = 2.0
IDLE_SECONDS = 4.0
CALM_SECONDS = 8.0

SECTION = '''
## Part {n}: what changes

The function `taken_{n}()` merges **only** neighbours that *start* inside the span before it, mark-{n}.
A short booking inside a long one therefore shortens the result, and a room is given away twice.

1. Sort the bookings by their start, then by their end.
2. Walk over them once, and keep the later of both ends.
   - a booking that touches the one before becomes part of it
   - one that lies apart begins a new span

```python
def taken_{n}(bookings: list[Span], day: int = {n}) -> list[Span]:
    """The parts of one day that are taken, in order."""
    result: list[Span] = []
    for span in sorted(bookings):
        if result and span.start <= result[-1].end:  # touches, so it belongs to it
            result[-1] = Span(result[-1].start, max(result[-1].end, span.end))
            continue
        result.append(Span(span.start, span.end))
    return [span for span in result if span.end > {n}]
```

| case {n} | before | after |
|:---|---:|---:|
| inside | 10:30 | 12:00 |
| touching | 12:00 | 12:00 |

> The end of a booking is not part of it, row-{n}.
'''


def text_of(characters: int) -> str:
    parts: list[str] = []
    size = number = 0
    while size < characters:
        parts.append(SECTION.replace("{n}", str(number)))
        size += len(parts[-1])
        number += 1
    return "".join(parts)[:characters]


def marks_of(text: str) -> Iterator[str]:
    """What has to be on the screen's rows in the end: something of each part of the text."""
    for number in range(text.count("## Part")):
        for mark in (f"Part {number}: what", f"mark-{number}.", f"def taken_{number}(", f"row-{number}."):
            if mark in text:
                yield mark


class StreamApp(App[None]):
    CSS = "#pane { height: 1fr; } Input { height: 3; }"

    def __init__(self, kind: str, seconds: float, report: Path) -> None:
        super().__init__()
        self._kind = kind
        self._seconds = seconds
        self._report = report
        self._sent: list[str] = []

    def compose(self) -> ComposeResult:
        if self._kind == "view":
            yield ConversationView(id="pane")
        else:
            with VerticalScroll(id="pane"):
                yield Markdown(id="markdown")
        yield Input()

    def on_mount(self) -> None:
        self.query_one(Input).focus()
        self.run_worker(self._measure())

    def on_input_changed(self, event: Input.Changed) -> None:
        if len(event.value) > 8:
            event.input.value = event.value[-1]
            event.input.cursor_position = 1

    async def _measure(self) -> None:
        await asyncio.sleep(SETTLING_SECONDS)
        write, settle, shown = self._rival() if self._kind == "rival" else self._view()
        phases: dict[str, Any] = {}
        await self._phase(phases, "idle", 0, IDLE_SECONDS, write)
        await self._phase(phases, "150 tok/s", 150, CALM_SECONDS, write)
        await self._phase(phases, "2000 tok/s", 2000, self._seconds, write)
        begin = time.monotonic()
        await settle()
        behind = time.monotonic() - begin
        text, rows = "".join(self._sent), shown()
        report = {
            "phases": phases,
            "characters": len(text),
            "behind_seconds": round(behind, 3),
            "text_is_complete": all(mark in rows for mark in marks_of(text)),
            "mounted_widgets": len(self.screen.query("*")),
        }
        self._report.write_text(json.dumps(report), encoding="utf-8")
        self.exit()

    async def _phase(
        self, phases: dict[str, Any], name: str, rate: int, seconds: float, write: Callable[[str], None]
    ) -> None:
        text = text_of(int(rate * seconds * CHARACTERS_OF_A_TOKEN))
        if self._sent and text:
            text = f"\n\n{text}"
        begin, cpu, at = time.monotonic(), time.process_time(), 0
        while (elapsed := time.monotonic() - begin) < seconds:
            due = min(int(elapsed * rate) * CHARACTERS_OF_A_TOKEN, len(text))
            while at < due:
                write(text[at : at + CHARACTERS_OF_A_TOKEN])
                at += CHARACTERS_OF_A_TOKEN
            # An idle agent waits for its socket, so nothing wakes it up here either.
            await asyncio.sleep(STEP_SECONDS if rate >= 1000 else 0.02 if rate else seconds)
        end = time.monotonic()
        share = (time.process_time() - cpu) / (end - begin)
        self._sent.append(text[:at])
        phases[name] = {
            "core_share": round(share, 4),
            "seconds": round(end - begin, 2),
            "tokens_per_second": round(at / CHARACTERS_OF_A_TOKEN / (end - begin), 1),
            "begin": begin,
            "end": end,
        }

    def _view(self) -> tuple[Callable[[str], None], Callable[[], Any], Callable[[], str]]:
        view = self.query_one(ConversationView)

        async def settle() -> None:
            view.flush()
            await asyncio.sleep(0)

        return lambda text: view.show(TextDelta(text=text)), settle, view.plain_text

    def _rival(self) -> tuple[Callable[[str], None], Callable[[], Any], Callable[[], str]]:
        markdown = self.query_one(Markdown)
        self.query_one(VerticalScroll).anchor()
        tasks: list[asyncio.Task[None]] = []
        stream = Markdown.get_stream(markdown)

        def write(text: str) -> None:
            tasks.append(asyncio.ensure_future(stream.write(text)))
            if len(tasks) > 1000:
                del tasks[:500]

        async def settle() -> None:
            await stream.stop()

        return write, settle, lambda: markdown.source


if __name__ == "__main__":
    StreamApp(sys.argv[1], float(sys.argv[2]), Path(sys.argv[3])).run()
