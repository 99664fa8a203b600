"""How long `agent server status` takes beyond starting the interpreter, with one server running.

    python -m benchmarks.status_time

The server is a stand-in that answers at once, so that what is measured is the command's own time. Each run of
the command is paired with one of `python -c pass`; processor time, because other work on the machine matters
less to it, and wall time beside it. The middle of a round counts; the rounds, each with the load of the
machine at its beginning, show how much that varies.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from agent.server.identity import process_identity
from agent.server.record import Record, write_record

ROOT = Path(__file__).resolve().parents[1]
RUNS = 15
ROUNDS = 3
LIMIT_SECONDS = 0.15
STATUS = ("-m", "agent", "server", "status")
NOTHING = ("-c", "pass")


class Answers(BaseHTTPRequestHandler):
    """What a healthy, idle server says."""

    def do_GET(self) -> None:
        raw = json.dumps([{"id": 0, "is_processing": False}] if self.path == "/slots" else {}).encode("utf-8")
        self.send_response(200)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *args: object) -> None:
        return


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder)
        write_state(state, server.server_address[1])
        environment = {**os.environ, "AGENT_STATE_HOME": str(state), "PYTHONPATH": str(ROOT)}
        measure(STATUS, environment)  # compiles what is not compiled yet
        rounds = [measure_round(environment) for _ in range(ROUNDS)]
    server.shutdown()
    result = {
        "what": "agent server status with one server, seconds beyond python -c pass",
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "processors": os.cpu_count(),
        "runs": RUNS,
        "limit_seconds": LIMIT_SECONDS,
        **{
            name: statistics.median(one[name] for one in rounds)
            for name in ("processor_seconds", "wall_seconds", "interpreter_processor_seconds")
        },
        "fastest_wall_seconds": min(one["fastest_wall_seconds"] for one in rounds),
        "rounds": rounds,
    }
    path = ROOT / "benchmarks" / "results" / "status_time.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))


def measure_round(environment: dict[str, str]) -> dict[str, float]:
    """The middle of some runs, in seconds."""
    load = os.getloadavg()[0]
    pairs = [(measure(STATUS, environment), measure(NOTHING, environment)) for _ in range(RUNS)]
    cpu = [status[0] - nothing[0] for status, nothing in pairs]
    wall = [status[1] - nothing[1] for status, nothing in pairs]
    return {
        "load": round(load, 2),
        "processor_seconds": round(statistics.median(cpu), 4),
        "wall_seconds": round(statistics.median(wall), 4),
        "fastest_wall_seconds": round(min(wall), 4),
        "interpreter_processor_seconds": round(statistics.median(nothing[0] for _, nothing in pairs), 4),
        "ratio_of_processor_time": round(
            statistics.median(status[0] / max(nothing[0], 1e-6) for status, nothing in pairs), 2
        ),
    }


def write_state(state: Path, port: int) -> None:
    """A record of a server, which is this very process."""
    (state / "run").mkdir()
    key = state / "run" / "key"
    key.write_text("k", encoding="utf-8")
    record = Record(
        pid=os.getpid(),
        identity=process_identity(os.getpid()) or "",
        port=port,
        profile="measured",
        fingerprint="f",
        state="ready",
        key_file=str(key),
        spec_file="",
        log_file="",
        started=time.time(),
        context_tokens=4096,
    )
    write_record(record, state / "run")


def measure(arguments: tuple[str, ...], environment: dict[str, str]) -> tuple[float, float]:
    """Processor and wall seconds of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, check=True)
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


if __name__ == "__main__":
    main()
