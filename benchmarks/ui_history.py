"""What a long conversation costs: opening it, one frame of it, its memory, against a short and an empty one.

    python -m benchmarks.ui_history [--blocks 5000] [--rounds 5] [--output benchmarks/results/ui_history.json]

Each round starts three processes one after the other, with 0, 50 and 5,000 recorded blocks. *Open* is the
processor time of the process from its start to the first complete frame with the conversation in it: loading
Textual, reading the record, laying out what is in view; *view* is the part of it after both were loaded. A
*frame* is one more piece of streamed text, laid out and written, 100 of them after each other. *Memory* is
what the process holds at the end (resident), *peak* its highest. The ratios are of medians. The driver is
Textual's headless one, at 120x40.
"""

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FRAMES = 100
LIMITS = {"open": 1.5, "frame": 1.3, "memory": 1.5}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--blocks", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "ui_history.json")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        print(json.dumps(asyncio.run(measure(options.child))))
        return
    sizes = {"empty": 0, "short": 50, "long": options.blocks}
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in sizes}
    with tempfile.TemporaryDirectory() as folder:
        for name, blocks in sizes.items():
            (Path(folder) / name).write_text(record(blocks), encoding="utf-8")
        for _ in range(options.rounds):
            for name in sizes:
                runs[name].append(in_process(Path(folder) / name))
    median = {
        name: {key: statistics.median(run[key] for run in found) for key in found[0]}
        for name, found in runs.items()
    }
    ratios = {
        "open": median["long"]["open_seconds"] / median["empty"]["open_seconds"],
        "frame": median["long"]["frame_seconds"] / median["short"]["frame_seconds"],
        "memory": median["long"]["memory_kib"] / median["empty"]["memory_kib"],
    }
    result: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime()),
        "what": "a conversation of many blocks against a short and an empty one",
        "blocks": options.blocks,
        "rounds": options.rounds,
        "load_before": round(os.getloadavg()[0], 2),
        "limits": LIMITS,
        "ratios": {name: round(ratio, 3) for name, ratio in ratios.items()},
        "medians": median,
    }
    options.output.parent.mkdir(exist_ok=True)
    options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    for name, ratio in ratios.items():
        print(f"{name}: {ratio:.2f} x (at most {LIMITS[name]})")
    print(f"mounted widgets: {median['empty']['widgets']:.0f} empty, {median['long']['widgets']:.0f} long")
    print(options.output)


def in_process(path: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.ui_history", "--child", str(path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=ROOT)
    return json.loads(done.stdout)


def record(blocks: int) -> str:
    """A session file of so many blocks: question, thought, answer with code, call with output."""
    lines: list[str] = []
    for number in range(blocks // 4):
        events = (
            {"type": "user_message", "text": f"Question {number}: why is the room given away twice?"},
            {"type": "assistant_message", "text": answer(number), "reasoning": "First I look. " * 20},
            {
                "type": "tool_started",
                "call_id": f"c{number}",
                "tool": "shell",
                "arguments": {"command": "make"},
            },
            {
                "type": "tool_finished",
                "call_id": f"c{number}",
                "tool": "shell",
                "outcome": "ok",
                "text": "line of output\n" * 20,
                "seconds": 1.5,
            },
        )
        lines.extend(json.dumps(event) for event in events)
    return "\n".join(lines)


def answer(number: int) -> str:
    code = "\n".join(f"    value_{line} = taken({line}, {number})" for line in range(8))
    return f"Part {number}: the *end* was wrong.\n\n```python\ndef f():\n{code}\n```\n\nNow it is right."


async def measure(path: Path) -> dict[str, float]:
    from textual.app import App, ComposeResult
    from textual.widgets import Input

    from agent.core.events import TextDelta
    from agent.session.replay import events_in
    from agent.ui.conversation.view import ConversationView

    records = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line]

    class HistoryApp(App[None]):
        CSS = "ConversationView { height: 1fr; }"

        def compose(self) -> ComposeResult:
            yield ConversationView()
            yield Input()

    begin = time.process_time()
    app = HistoryApp()
    async with app.run_test(size=(120, 40)) as pilot:
        view = app.query_one(ConversationView)
        view.load_history(list(events_in(records)))
        await pilot.pause()
        opened = time.process_time()
        view_seconds = opened - begin
        begin = time.process_time()
        for number in range(FRAMES):
            view.show(TextDelta(text=f"Some more text, part {number}, that goes on.\n\n"))
            view.flush()
            await pilot.pause()
        frame = (time.process_time() - begin) / FRAMES
        return {
            "open_seconds": opened,
            "view_seconds": view_seconds,
            "frame_seconds": frame,
            "memory_kib": resident_kib(),
            "peak_kib": float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss),
            "widgets": float(len(app.screen.query("*"))),
            "blocks": float(view.block_count),
            "laid_out": float(view.rendered_block_count),
        }


def resident_kib() -> float:
    """What the process holds now; Linux only, as the peak does not go down again."""
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith("VmRSS:"):
            return float(line.split()[1])
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


if __name__ == "__main__":
    main()
