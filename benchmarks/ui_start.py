"""From the start of the process to an input field that takes keys, `agent` against a bare Textual app.

    python -m benchmarks.ui_start [--rounds 9] [--output benchmarks/results/ui_start.json]

Both run in a real pseudo-terminal of 120x40, in turns, so that other work on the machine meets both. A letter
is typed as soon as the process exists, and again and again; the time counts from right before the fork until
the letter is on the terminal for the first time. The bare app is Textual with one `Input` and nothing else.
`agent` runs in an empty folder with no profile that could start a server; that work comes after the field is
there in any case. The ratio is of medians; processor time of the whole process until then is told beside it.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.typist import Program, processor_seconds

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 1.6
LETTER = "ß"  # on no screen by itself
PRESS_SECONDS = 0.02
LONGEST_SECONDS = 60.0
BARE = """
from textual.app import App
from textual.widgets import Input


class Bare(App):
    def compose(self):
        yield Input()


Bare().run()
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--note", default="", help="what else the machine was doing")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "ui_start.json")
    options = parser.parse_args()
    commands = {"bare": ("-c", BARE), "agent": ("-m", "agent", "--profile", "none-for-this-measurement")}
    load = os.getloadavg()[0]
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as folder:
        for arguments in commands.values():  # compiles what is not compiled yet
            time_to_field(arguments, Path(folder))
        for _ in range(options.rounds):
            for name, arguments in commands.items():
                runs[name].append(time_to_field(arguments, Path(folder)))
    wall = {name: statistics.median(run[0] for run in found) for name, found in runs.items()}
    processor = {name: statistics.median(run[1] for run in found) for name, found in runs.items()}
    result: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime()),
        "what": "process start to a typed letter on the terminal, pseudo-terminal 120x40",
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "rounds": options.rounds,
        "load_before": round(load, 2),
        "note": options.note,
        "limit_ratio": LIMIT,
        "ratio": round(wall["agent"] / wall["bare"], 3),
        "ratio_of_fastest": round(
            min(run[0] for run in runs["agent"]) / min(run[0] for run in runs["bare"]), 3
        ),
        "ratio_of_processor_time": round(processor["agent"] / processor["bare"], 3),
        "seconds": {name: round(value, 4) for name, value in wall.items()},
        "processor_seconds": {name: round(value, 4) for name, value in processor.items()},
    }
    options.output.parent.mkdir(exist_ok=True)
    options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))


def time_to_field(arguments: tuple[str, ...], folder: Path) -> tuple[float, float]:
    """Wall and processor seconds until the letter is echoed. Raises RuntimeError: it never was."""
    work = Path(tempfile.mkdtemp(dir=folder))
    environment = {
        "PYTHONPATH": str(ROOT),
        "AGENT_STATE_HOME": str(work / "state"),
        "AGENT_CONFIG_HOME": str(work / "config"),
    }
    begin = time.monotonic()
    with Program([sys.executable, *arguments], work, environment) as program:
        while LETTER not in program.latest_text:
            if (pressed := time.monotonic()) - begin > LONGEST_SECONDS:
                raise RuntimeError("the letter was never shown")
            program.send(LETTER)
            while LETTER not in program.latest_text and time.monotonic() < pressed + PRESS_SECONDS:
                program.read(PRESS_SECONDS)
        return time.monotonic() - begin, processor_seconds(program.pid)


if __name__ == "__main__":
    main()
