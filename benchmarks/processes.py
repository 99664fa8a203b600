"""Running a program and knowing what it cost: wall time, processor time, memory."""

import os
import subprocess
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
    out, err = scratch / "stdout", scratch / "stderr"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        started = time.monotonic()
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr
        )
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        ended = time.monotonic()
        own_cpu = _own_cpu(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return Cost(
        exit_code=process.returncode,
        started=started,
        ended=ended,
        cpu=usage.ru_utime + usage.ru_stime,
        own_cpu=own_cpu,
        largest_kib=usage.ru_maxrss,
        stdout=out.read_text("utf-8", "replace"),
        stderr=err.read_text("utf-8", "replace"),
    )


def _own_cpu(pid: int) -> float | None:
    """Processor time without children, which only the record of the process itself tells apart."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
    except OSError:
        return None
    # The name, in parentheses, may hold spaces; utime and stime are the fields 14 and 15, counted from 1.
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
