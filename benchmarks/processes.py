"""Running a program and knowing what it cost: wall time, processor time, memory.

The program is started by a small interpreter of its own, `python processes.py REPORT COMMAND...`, because
Linux counts the memory of whoever starts a process as that process's own until its program is loaded.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one process cost.

    `started` and `ended` are readings of the monotonic clock, which all processes of a machine share, taken
    right before the process was made and right after it had ended. Seconds of processor time are user and
    system time together; `own_cpu` leaves out its children and is None where the system does not tell.
    `largest_kib` is the resident memory of the largest process among it and its children.
    """

    exit_code: int
    started: float
    ended: float
    cpu: float
    own_cpu: float | None
    largest_kib: int
    stdout: str
    stderr: str

    @property
    def seconds(self) -> float:
        return self.ended - self.started


def run(command: Sequence[str], *, folder: Path, environment: Mapping[str, str], scratch: Path) -> Cost:
    """Runs a command to its end, with nothing to read. Its output goes through files in `scratch`."""
    out, err, report = scratch / "stdout", scratch / "stderr", scratch / "cost.json"
    report.unlink(missing_ok=True)
    launcher = (sys.executable, "-I", "-S", str(Path(__file__).resolve()), str(report))
    with out.open("wb") as stdout, err.open("wb") as stderr:
        subprocess.run(
            (*launcher, *command),
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            check=False,
        )
    text = err.read_text("utf-8", "replace")
    if not report.exists():
        raise RuntimeError(f"{command[0]} could not be started: {text}")
    figures = json.loads(report.read_text("utf-8"))
    return Cost(**figures, stdout=out.read_text("utf-8", "replace"), stderr=text)


def launch(command: Sequence[str]) -> dict[str, float | int | None]:
    """Runs a command from this process; what it cost, without its output."""
    started = time.monotonic()
    process = subprocess.Popen(command)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    ended = time.monotonic()
    own_cpu = _own_cpu(process.pid)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return {
        "exit_code": process.returncode,
        "started": started,
        "ended": ended,
        "cpu": usage.ru_utime + usage.ru_stime,
        "own_cpu": own_cpu,
        # macOS counts in bytes.
        "largest_kib": usage.ru_maxrss // (1024 if sys.platform == "darwin" else 1),
    }


def _own_cpu(pid: int) -> float | None:
    """Processor time without children, which only the record of the process itself tells apart."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
    except OSError:
        return None
    # The name, in parentheses, may hold spaces; utime and stime are the fields 14 and 15, counted from 1.
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(launch(sys.argv[2:])), encoding="utf-8")
