"""The rival that `ui_streaming` measures: Textual's own Markdown widget, its stream, and an input field."""

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from textual.app import App, ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Input, Markdown

from benchmarks.streamed_text import CHARACTERS_OF_A_TOKEN, text_of

SETTLING_SECONDS = 2.0
CALM_SECONDS = 8.0


class RivalApp(App[None]):
    CSS = "#pane { height: 1fr; } Input { height: 3; }"

    def __init__(self, seconds: float, report: Path) -> None:
        super().__init__()
        self._seconds = seconds
        self._report = report
        self._sent: list[str] = []

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="pane"):
            yield Markdown(id="markdown")
        yield Input()

    def on_mount(self) -> None:
        self.query_one(Input).focus()
        self.query_one(VerticalScroll).anchor()
        self.run_worker(self._measure())

    async def _measure(self) -> None:
        await asyncio.sleep(SETTLING_SECONDS)
        markdown = self.query_one(Markdown)
        stream = Markdown.get_stream(markdown)
        phases = {
            "150 tok/s": await self._phase(150, CALM_SECONDS, stream),
            "2000 tok/s": await self._phase(2000, self._seconds, stream),
        }
        begin = time.monotonic()
        await stream.stop()
        text = "".join(self._sent)
        report = {
            "phases": phases,
            "characters": len(text),
            "behind_seconds": round(time.monotonic() - begin, 3),
            "text_is_complete": markdown.source == text,
            "mounted_widgets": len(self.screen.query("*")),
        }
        self._report.write_text(json.dumps(report), encoding="utf-8")
        self.exit()

    async def _phase(self, rate: int, seconds: float, stream: Any) -> dict[str, Any]:
        text = text_of(int(rate * seconds * CHARACTERS_OF_A_TOKEN))
        begin, cpu, at = time.monotonic(), time.process_time(), 0
        writing: set[asyncio.Task[None]] = set()
        while (elapsed := time.monotonic() - begin) < seconds:
            due = min(int(elapsed * rate) * CHARACTERS_OF_A_TOKEN, len(text))
            while at < due:
                task = asyncio.create_task(stream.write(text[at : at + CHARACTERS_OF_A_TOKEN]))
                writing.add(task)
                task.add_done_callback(writing.discard)
                at += CHARACTERS_OF_A_TOKEN
            await asyncio.sleep(0.005)
        end = time.monotonic()
        self._sent.append(text[:at])
        share = (time.process_time() - cpu) / (end - begin)
        return {
            "core_share": round(share, 4),
            "seconds": round(end - begin, 2),
            "tokens_per_second": round(at / CHARACTERS_OF_A_TOKEN / (end - begin), 1),
            "begin": begin,
            "end": end,
        }


if __name__ == "__main__":
    RivalApp(float(sys.argv[1]), Path(sys.argv[2])).run()
