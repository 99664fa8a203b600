"""Tells a process from another one that later got the same number."""

import os
import signal
import sys
import time
from pathlib import Path

_COLLECT_SECONDS = 0.5
_COLLECT_AGAIN_SECONDS = 0.01
_STATE_FIELD = 0
_START_TIME_FIELD = 19
"""Counted from the state, which follows the closing bracket of the name: field 22 of proc_pid_stat(5)."""


def process_identity(pid: int) -> str | None:
    """A text that differs for every process that ever had this number, or None when it does not run.

    A process that has ended and only waits to be collected does not run.
    """
    if sys.platform != "linux":
        return _identity_from_psutil(pid)
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return None
    if len(after_name) <= _START_TIME_FIELD or after_name[_STATE_FIELD] in ("Z", "X"):
        return None
    return f"{boot}:{after_name[_START_TIME_FIELD]}"


def seconds_running(pid: int, started: float) -> float:
    """How long a process has been running. On Linux a clock that is set meanwhile does not matter.

    Args:
        started: when it was started, in seconds since 1970, for systems that do not tell.
    """
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        began = int(after_name[_START_TIME_FIELD]) / os.sysconf("SC_CLK_TCK")
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - began)
    except (OSError, ValueError, IndexError, AttributeError):
        return max(0.0, time.time() - started)


def command_line(pid: int) -> list[str]:
    """The arguments that a process was started with; empty when they cannot be read."""
    if sys.platform != "linux":
        import psutil

        try:
            return psutil.Process(pid).cmdline()
        except psutil.Error:
            return []
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return []
    return [part.decode("utf-8", "surrogateescape") for part in raw.split(b"\0") if part]


def resident_bytes(pid: int) -> int | None:
    """Memory that a process holds at present, in bytes."""
    if sys.platform == "linux":
        # The second field of proc_pid_statm(5), in pages; psutil takes longer to load than all else here.
        try:
            return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, ValueError, IndexError):
            return None
    import psutil

    try:
        return psutil.Process(pid).memory_info().rss
    except psutil.Error:
        return None


def send_signal(pid: int, number: signal.Signals) -> None:
    """Sends a signal; a process that is gone is fine."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def collect(pid: int) -> int | None:
    """The exit status of a child of ours that has ended (negative: the signal that ended it).

    None while it runs, and for a process that is not our child.
    """
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return None
    return os.waitstatus_to_exitcode(status) if ended else None


def collect_ended(pid: int) -> int | None:
    """As `collect`, for a process that has ended or is about to. Blocks for half a second at the most.

    A process counts as ended a moment before the last of its threads has, and cannot be collected until then.
    """
    deadline = time.monotonic() + _COLLECT_SECONDS
    while True:
        try:
            ended, status = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            return None
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= deadline:
            return None
        time.sleep(_COLLECT_AGAIN_SECONDS)


def _identity_from_psutil(pid: int) -> str | None:
    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return f"{psutil.boot_time():.0f}:{process.create_time():.3f}"
    except psutil.Error:
        return None
