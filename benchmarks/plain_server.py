"""A llama-server for measurements, run directly: no profile, no supervisor, greedy requests."""

import os
import re
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.core.engine_metrics import ACCEPTED, DRAFTED, DRAFTS, EngineMetrics, read_metrics
from agent.resources import servers_folder
from agent.server.binaries import installed
from agent.server.caps import shielded
from agent.server.loopback import free_port, request_json, status_of

_START_SECONDS = 120.0
_ANSWER_SECONDS = 600.0
_POLL_SECONDS = 0.05
_GENERATED = re.compile(r"statistics +draft-dflash:.*dur\(b,g,a\) = [\d.]+, ([\d.]+), [\d.]+ ms")


def upstream_binary() -> Path:
    """The installed llama-server of upstream.

    Raises:
        FileNotFoundError: there is none.
    """
    for one in installed(servers_folder()):
        if one.dialect == "llama.cpp":
            return one.path
    raise FileNotFoundError("no llama-server to measure: `agent server install llama.cpp`")


@dataclass(frozen=True, slots=True)
class Drafted:
    """What was drafted between two looks at the counters; `by_position` are accepted tokens."""

    drafts: int
    drafted: int
    accepted: int
    by_position: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PlainServer:
    port: int
    log_file: Path
    pid: int

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """The decoded answer; anything but a 200 ends the measurement."""
        status, answer = request_json(self.port, "POST", path, "", dict(body), _ANSWER_SECONDS)
        if status != 200:
            raise RuntimeError(f"{path}: {status} {answer}")
        return answer

    def counters(self) -> EngineMetrics:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=30) as answer:
            return read_metrics(answer.read().decode("utf-8"))

    def cpu_seconds(self) -> float:
        """Processor time so far. With one thread that is what the work takes, whatever else is done."""
        text = Path(f"/proc/{self.pid}/stat").read_text("ascii", "replace")
        fields = text.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def log(self) -> str:
        return self.log_file.read_text("utf-8", "replace")


def drafted_between(before: EngineMetrics, after: EngineMetrics) -> Drafted:
    def grown(name: str) -> int:
        return int(after.sums.get(name, 0) - before.sums.get(name, 0))

    earlier = before.by_position + (0,) * (len(after.by_position) - len(before.by_position))
    positions = tuple(late - early for late, early in zip(after.by_position, earlier, strict=True))
    return Drafted(grown(DRAFTS), grown(DRAFTED), grown(ACCEPTED), positions)


def drafter_seconds(log: str) -> float:
    """Seconds that the drafter took since the server started, by its log (`-lv 4`); 0 without drafts."""
    found = _GENERATED.findall(log)
    return float(found[-1]) / 1000 if found else 0.0


@contextmanager
def serving(binary: Path, words: Sequence[str], log_file: Path) -> Iterator[PlainServer]:
    """A server with these options, stopped at the end.

    Raises:
        RuntimeError: it does not start; with the end of its log.
    """
    port = free_port()
    environment = shielded(os.environ) | {"XDG_CONFIG_HOME": str(log_file.parent)}
    command = [str(binary), "--port", str(port), "--offline", "--metrics", *words]
    with log_file.open("wb") as log:
        process = subprocess.Popen(command, stderr=log, stdout=subprocess.DEVNULL, env=environment)
    try:
        deadline = time.monotonic() + _START_SECONDS
        while status_of(port, "/health") != 200:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"it does not serve: {log_file.read_text('utf-8', 'replace')[-2000:]}")
            time.sleep(_POLL_SECONDS)
        yield PlainServer(port, log_file, process.pid)
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
