"""From the start of `agent run` to its first chat request, with five MCP servers configured and with none.

    python -m benchmarks.mcp_start [--rounds 9] [--output benchmarks/results/mcp_start.json]

The model's server answers from a script, at once. Both ways run in turns, so that other work on the machine
meets both; each has a home of its own. The servers are real programs (`tests/fakes/mcp_server.py`) with 20
tools each that have been connected to before, as on every day but the first; nobody calls them in these runs,
so none may be started, which is checked. The difference is of medians; that of the fastest runs is told
beside it, because other work only ever adds time.
"""

import argparse
import contextlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.fakes.scripted_server import ScriptedServer
from tests.fakes.state import ServerSettings

ROOT = Path(__file__).resolve().parents[1]
SERVER = ROOT / "tests" / "fakes" / "mcp_server.py"
SERVERS = 5
LIMIT_SECONDS = 0.05
AGENT = (sys.executable, "-m", "agent")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--note", default="", help="what else the machine was doing")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "mcp_start.json")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    runs: dict[str, list[float]] = {"none": [], "five": []}
    with tempfile.TemporaryDirectory() as folder:
        homes = {name: Path(folder) / name for name in runs}
        for home in homes.values():
            (home / "work").mkdir(parents=True)
        for number in range(SERVERS):
            _add_server(homes["five"], number)
        for home in homes.values():  # compiles what is not compiled yet
            time_to_request(home)
        for _ in range(options.rounds):
            for name, home in homes.items():
                runs[name].append(time_to_request(home))
        started = sorted(path.name for path in homes["five"].glob("started-*"))
    if started:
        raise RuntimeError(f"servers were started that nobody had asked for: {', '.join(started)}")
    result = _result(runs, options.rounds, load, options.note)
    options.output.parent.mkdir(exist_ok=True)
    options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))


def time_to_request(home: Path) -> float:
    """Seconds from right before the process is made until its first chat request has arrived."""
    with contextlib.closing(ScriptedServer(["Done."], ServerSettings())) as server:
        environment = {**_environment(home), "AGENT_SERVER_URL": server.url}
        begin = time.monotonic()
        done = subprocess.run(
            [*AGENT, "run", "-p", "Say that you are done."],
            cwd=home / "work",
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0 or not server.chats:
            raise RuntimeError(f"the run failed: {done.stderr}")
        return server.chats[0].arrived_at - begin


def _add_server(home: Path, number: int) -> None:
    """Configures a server and connects to it once, so that its tools are known."""
    command = [sys.executable, "-S", str(SERVER), "tools=20"]
    subprocess.run(
        [
            *AGENT,
            "mcp",
            "add",
            f"server-{number}",
            "--env",
            f"STARTED={home}/started-{number}",
            "--",
            *command,
        ],
        cwd=home / "work",
        env=_environment(home),
        capture_output=True,
        check=True,
    )
    (home / f"started-{number}").unlink()


def _environment(home: Path) -> dict[str, str]:
    homes = {f"AGENT_{kind}_HOME": str(home / kind.lower()) for kind in ("CONFIG", "STATE", "DATA", "CACHE")}
    return {**os.environ, **homes, "HOME": str(home), "PYTHONPATH": str(ROOT)}


def _result(runs: dict[str, list[float]], rounds: int, load: float, note: str) -> dict[str, Any]:
    median = {name: statistics.median(found) for name, found in runs.items()}
    fastest = {name: min(found) for name, found in runs.items()}
    return {
        "what": "process start to first chat request of `agent run`, with five MCP servers and with none",
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "rounds": rounds,
        "load_before": round(load, 2),
        "note": note,
        "limit_difference_seconds": LIMIT_SECONDS,
        "difference_seconds": round(median["five"] - median["none"], 4),
        "difference_of_fastest_seconds": round(fastest["five"] - fastest["none"], 4),
        "ratio": round(median["five"] / median["none"], 3),
        "seconds": {name: round(value, 4) for name, value in median.items()},
        "fastest_seconds": {name: round(value, 4) for name, value in fastest.items()},
        "within_limit": median["five"] - median["none"] <= LIMIT_SECONDS,
    }


if __name__ == "__main__":
    main()
