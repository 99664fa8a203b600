"""What it costs to show a stream of Markdown with code, and how quickly keys are echoed meanwhile.

    python -m benchmarks.ui_streaming [--seconds 60] [--rival] [--output benchmarks/results/ui_streaming.json]

`agent` itself runs in a real pseudo-terminal of 120x40, and a scripted server in a process of its own streams
to it over HTTP, one event of four characters for each token. This process types a letter, waits until
it comes back on the terminal, takes it away again, and types the next one. Four phases in the same session:
nothing happens, a reply at 150 tok/s that is only watched, the same with typing, and a reply at 2,000 tok/s
with typing. The share of a core is the
user and system time of the agent's process divided by wall time. In the end the session file is compared
with what the server sent, and the last part of the text with what is on the terminal.

`--rival` adds a bare app with the Markdown widget of Textual and its stream, without any network.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.streamed_text import CHARACTERS_OF_A_TOKEN, text_of
from benchmarks.typist import Program, processor_seconds

ROOT = Path(__file__).resolve().parents[1]
SETTLING_SECONDS = 5.0
IDLE_SECONDS = 60.0
CALM_SECONDS = 10.0
LIMITS = {
    "idle": {"core_share": 0.01},
    "150 tok/s": {"core_share": 0.15},
    "2000 tok/s, typing": {"core_share": 0.5, "echo_p99_seconds": 0.05},
}
PROFILE = """engine = "remote"
url = "{url}"
context = {context}
[tools]
protocol = "native"
"""
CONTEXT = 2_000_000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="length of the 2,000 tok/s phase")
    parser.add_argument("--rival", action="store_true", help="measure Textual's Markdown widget too")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "ui_streaming.json")
    options = parser.parse_args()
    result: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime()),
        "what": "Markdown with code streamed to `agent` over HTTP, pseudo-terminal 120x40",
        "python": sys.version.split()[0],
        "processors": os.cpu_count(),
        "load_before": round(os.getloadavg()[0], 2),
        "limits": LIMITS,
    }
    with tempfile.TemporaryDirectory() as folder:
        result |= measure_agent(Path(folder), options.seconds)
        if options.rival:
            result["rival"] = measure_rival(Path(folder), min(options.seconds, 20.0))
    options.output.parent.mkdir(exist_ok=True)
    options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    report("agent", result)
    if "rival" in result:
        report("rival", result["rival"])
    print(options.output)


def report(name: str, figures: dict[str, Any]) -> None:
    kept = "all of it" if figures["text_is_complete"] else "NOT ALL"
    print(f"{name}: text: {kept}; behind at the end: {figures['behind_seconds']:.2f} s")
    for phase, values in figures["phases"].items():
        echo = f"echo p50 {values['echo_p50_seconds']} s, p99 {values['echo_p99_seconds']} s"
        print(f"  {phase}: {values['core_share']:.1%} of a core, {echo} ({values['keys']} keys)")


def measure_agent(folder: Path, seconds: float) -> dict[str, Any]:
    parts = (("150 tok/s", 150, CALM_SECONDS), ("150 tok/s, typing", 150, CALM_SECONDS),
             ("2000 tok/s, typing", 2000, seconds))  # fmt: skip
    replies = [
        {
            "text": text_of(int(rate * length * CHARACTERS_OF_A_TOKEN)),
            "tokens_per_second": rate,
            "piece_characters": CHARACTERS_OF_A_TOKEN,
        }
        for _, rate, length in parts
    ]
    with scripted_server(folder, replies) as url, agent_in_terminal(folder, url) as agent:
        agent.wait_for_quiet(longest_seconds=60)
        agent.watch_for(SETTLING_SECONDS)
        phases = {"idle": phase(agent, IDLE_SECONDS)}
        for (name, _, length), reply in zip(parts, replies, strict=True):
            agent.send("go\r")
            agent.wait_for("Part 0: what", longest_seconds=60)
            phases[name] = phase(agent, length - 1.0, types="typing" in name)
            begin = time.monotonic()
            last = reply["text"].rstrip().splitlines()[-1][-8:]
            agent.wait_for_quiet(longest_seconds=120)
            behind = max(time.monotonic() - begin - 1.0, 0.0)
            shown = last.strip("`|> .") in agent.latest_text
        sent = [reply["text"] for reply in replies]
        return {
            "phases": phases,
            "characters": sum(map(len, sent)),
            "behind_seconds": round(behind, 3),
            "last_words_on_the_terminal": shown,
            "text_is_complete": recorded_replies(folder) == sent,
            "bytes_written": agent.bytes_written,
        }


def phase(agent: Program, seconds: float, *, types: bool = False) -> dict[str, Any]:
    begin, spent = time.monotonic(), processor_seconds(agent.pid)
    echoes = agent.type_for(seconds) if types else agent.watch_for(seconds)
    passed = time.monotonic() - begin
    return {
        "core_share": round((processor_seconds(agent.pid) - spent) / passed, 4),
        "seconds": round(passed, 2),
        **echoes.figures(),
    }


@contextmanager
def scripted_server(folder: Path, replies: list[dict[str, Any]]) -> Iterator[str]:
    script = folder / "script.json"
    script.write_text(json.dumps(replies), encoding="utf-8")
    command = [sys.executable, "-m", "tests.fakes.scripted_server", str(script), "--n-ctx", str(CONTEXT)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, encoding="utf-8") as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().split()[-1]
        finally:
            server.kill()


@contextmanager
def agent_in_terminal(folder: Path, url: str) -> Iterator[Program]:
    profiles = folder / "config" / "profiles"
    profiles.mkdir(parents=True)
    text = PROFILE.format(url=url, context=CONTEXT)
    (profiles / "stream.toml").write_text(text, encoding="utf-8")
    (folder / "work").mkdir()
    environment = {
        "AGENT_CONFIG_HOME": str(folder / "config"),
        "AGENT_STATE_HOME": str(folder / "state"),
        "AGENT_LIMITS_REPLY_TOKENS": str(CONTEXT // 2),
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-m", "agent", "--profile", "stream"]
    with Program(command, folder / "work", environment) as program:
        yield program


def recorded_replies(folder: Path) -> list[str]:
    """The model's words in the session file, one text a reply."""
    [path] = (folder / "state").rglob("sessions/**/*.jsonl")
    records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [record["text"] for record in records if record["type"] == "assistant_message"]


def measure_rival(folder: Path, seconds: float) -> dict[str, Any]:
    """Runs the bare app in a pseudo-terminal and types into it until it ends."""
    path = folder / "report.json"
    command = [sys.executable, "-m", "benchmarks.ui_streaming_rival", str(seconds), str(path)]
    with Program(command, folder, {"PYTHONPATH": str(ROOT)}) as program:
        echoes = program.type_for(seconds + 120)
        figures = json.loads(path.read_text("utf-8"))
    for values in figures["phases"].values():
        values.update(echoes.figures(values.pop("begin"), values.pop("end")))
    figures["bytes_written"] = program.bytes_written
    return figures


if __name__ == "__main__":
    main()
