"""Lets no command outlive this program, however that ends.

A small shell stands beside each command and reads from a pipe whose other end only this program holds. When
the program is gone, also by `kill -9`, the pipe ends and the shell kills the command and all that it started:
its process group, and on Linux whatever carries its mark in the environment. It costs about a millisecond.
"""

import os
import subprocess
from contextlib import suppress
from pathlib import Path

MARK = "AGENT_COMMAND"
"""Variable that tells which command a process was started by, wherever it has moved to."""

_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
# The id of a leader that is gone may be another process's by now, which has begun at another time. Three
# rounds, because what starts processes may do so between two looks.
_SCRIPT = """
read -r leader began || leader=
read -r more
is_the_same() {
    [ -r "/proc/$1/stat" ] || return 0
    read -r line < "/proc/$1/stat"
    line=${line##*) }
    set -- $line
    [ "${20}" = "$began" ]
}
for round in 1 2 3; do
    if [ -n "$leader" ] && is_the_same "$leader"; then kill -s KILL -- "-$leader"; fi
    for place in /proc/[0-9]*; do
        if tr '\\0' '\\n' < "$place/environ" | grep -q "^$1$"; then kill -s KILL "${place#/proc/}"; fi
    done
done
"""


class Lifeline:
    """Of one command. Where no shell can be started there is none, and the command runs all the same.

    Args:
        mark: what its processes carry in the variable `MARK`; letters, digits, dots and dashes.
    """

    def __init__(self, mark: str) -> None:
        reading, self._held = os.pipe()
        self._watcher: subprocess.Popen[bytes] | None = None
        try:
            self._watcher = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT, "sh", f"{MARK}={mark}"],
                stdin=reading,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PATH": _PATH},
                start_new_session=True,
            )
        except OSError:
            self.release()
        finally:
            os.close(reading)

    def hold(self, leader: int) -> None:
        """Names the process group of the command."""
        if self._held >= 0:
            with suppress(OSError):
                os.write(self._held, b"%d %s\n" % (leader, _begin_of(leader)))

    def release(self) -> None:
        """The command has ended, or somebody else sees to it from now on."""
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.kill()
            watcher.wait()
        held, self._held = self._held, -1
        if held >= 0:
            os.close(held)


def _begin_of(process: int) -> bytes:
    """When a process has begun, in the kernel's ticks; see proc_pid_stat(5)."""
    try:
        return Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[19]
    except (OSError, IndexError):
        return b"0"
