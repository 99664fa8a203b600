"""What it costs to show a stream of Markdown with code, and how quickly keys are echoed meanwhile.

    python -m benchmarks.ui_streaming [--seconds 60] [--rival] [--output benchmarks/results/ui_streaming.json]

The conversation view and an input field run in a real pseudo-terminal of 120x40, in a process of their own.
This process types a letter, waits until it comes back on the terminal, and types the next one. Three phases
in the same process: nothing happens (no typing either), 150 tok/s, 2,000 tok/s. Each token is one event of
four characters. The share of a core is the process's own user and system time divided by wall time. In the
end the text on the rows is compared with what was sent. `--rival` does the same with the Markdown widget of
Textual and its stream.
"""

import argparse
import codecs
import fcntl
import json
import os
import pty
import select
import struct
import sys
import tempfile
import termios
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.ui_streaming_app import IDLE_SECONDS, SETTLING_SECONDS

ROOT = Path(__file__).resolve().parents[1]
COLUMNS, ROWS = 120, 40
# None of these is in the text that is streamed. The field holds only the last few of them.
LETTERS = "αβγδεζηθικλμνξοπρστυφχψωабвгдежзийклмнопрстуфхцчшщыэюя"
PAUSE_SECONDS = 0.08
QUIET_SECONDS = SETTLING_SECONDS + IDLE_SECONDS + 0.3
LIMITS = {
    "idle": {"core_share": 0.01},
    "150 tok/s": {"core_share": 0.15},
    "2000 tok/s": {"core_share": 0.5, "echo_p99_seconds": 0.05},
}


@dataclass
class Echoes:
    """Seconds from key press to echo, by when the key was pressed (monotonic clock)."""

    pressed: list[tuple[float, float]] = field(default_factory=list)
    bytes_written: int = 0

    def figures(self, begin: float, end: float) -> dict[str, float | int | None]:
        times = sorted(seconds for at, seconds in self.pressed if begin <= at < end)
        if not times:
            return {"keys": 0, "echo_p50_seconds": None, "echo_p99_seconds": None}
        return {
            "keys": len(times),
            "echo_p50_seconds": round(times[len(times) // 2], 4),
            "echo_p99_seconds": round(times[min(int(len(times) * 0.99), len(times) - 1)], 4),
            "echo_max_seconds": round(times[-1], 4),
        }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="length of the 2,000 tok/s phase")
    parser.add_argument("--rival", action="store_true", help="measure Textual's Markdown widget too")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "ui_streaming.json")
    options = parser.parse_args()
    result: dict[str, Any] = {
        "what": "Markdown with code streamed into the conversation view, pseudo-terminal 120x40",
        "python": sys.version.split()[0],
        "load_before": round(os.getloadavg()[0], 2),
        "limits": LIMITS,
        "view": measure("view", options.seconds),
    }
    if options.rival:
        result["rival"] = measure("rival", min(options.seconds, 20.0))
    options.output.parent.mkdir(exist_ok=True)
    options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    for name in ("view", "rival"):
        if name in result:
            report(name, result[name])
    print(options.output)


def report(name: str, figures: dict[str, Any]) -> None:
    kept = "all of it" if figures["text_is_complete"] else "NOT ALL"
    print(f"{name}: text on the rows: {kept}; behind at the end: {figures['behind_seconds']:.2f} s")
    for phase, values in figures["phases"].items():
        echo = f"echo p50 {values['echo_p50_seconds']} s, p99 {values['echo_p99_seconds']} s"
        print(f"  {phase}: {values['core_share']:.1%} of a core, {echo} ({values['keys']} keys)")


def measure(kind: str, seconds: float) -> dict[str, Any]:
    """Runs one app in a pseudo-terminal and types into it until it ends."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        module = "benchmarks.ui_streaming_app"
        command = [sys.executable, "-m", module, kind, str(seconds), str(path)]
        environment = {
            **os.environ,
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "PYTHONPATH": str(ROOT),
        }
        child, terminal = pty.fork()
        if child == 0:
            os.execve(sys.executable, command, environment)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        echoes = type_until_the_end(terminal)
        os.waitpid(child, 0)
        figures = json.loads(path.read_text("utf-8"))
    for phase in figures["phases"].values():
        phase.update(echoes.figures(phase.pop("begin"), phase.pop("end")))
    figures["bytes_written"] = echoes.bytes_written
    return figures


def type_until_the_end(terminal: int) -> Echoes:
    echoes = Echoes()
    # Keys that come in two reads are one letter only for a decoder that remembers.
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    number, pressed_at, seen = 0, 0.0, ""
    next_press = time.monotonic() + 3600
    while True:
        ready, _, _ = select.select([terminal], [], [], 0.02)
        if ready:
            try:
                data = os.read(terminal, 65536)
            except OSError:
                return echoes
            if not data:
                return echoes
            if not echoes.bytes_written:
                next_press = time.monotonic() + QUIET_SECONDS
            echoes.bytes_written += len(data)
            text = decoder.decode(data)
            seen = (seen + text)[-70_000:] if pressed_at else ""
        letter = LETTERS[number % len(LETTERS)]
        now = time.monotonic()
        if pressed_at and letter in seen:
            echoes.pressed.append((pressed_at, now - pressed_at))
            number, pressed_at, next_press = number + 1, 0.0, now + PAUSE_SECONDS
        elif pressed_at and now - pressed_at > 5:
            echoes.pressed.append((pressed_at, now - pressed_at))
            number, pressed_at, next_press = number + 1, 0.0, now
        elif not pressed_at and now >= next_press:
            seen, pressed_at = "", now
            os.write(terminal, LETTERS[number % len(LETTERS)].encode("utf-8"))


if __name__ == "__main__":
    main()
