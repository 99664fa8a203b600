"""What comes on standard input beside the words of a task: `git diff | agent -p "review this" -`."""

import os
import select
import stat
import sys

from agent.core.errors import UsageError
from agent.core.outside_text import fenced
from agent.headless.task import MAX_TASK_BYTES

UNREAD = "warning: standard input is not read; a - behind the text of -p gives it along"


def with_standard_input(text: str) -> str:
    """The task with all of standard input below it. Reads to its end.

    Raises UsageError: it is closed, empty, too long or no text.
    """
    if sys.stdin is None or sys.stdin.closed:
        raise UsageError("standard input is closed, so there is nothing to give along", "leave out the -")
    if sys.stdin.isatty():
        print("Type what goes along, then Ctrl-D on a line of its own.", file=sys.stderr)
    raw = sys.stdin.buffer.read(MAX_TASK_BYTES + 1)
    if len(raw) > MAX_TASK_BYTES:
        raise UsageError(
            f"standard input is too long, {MAX_TASK_BYTES:,} bytes may go along",
            "write it to a file in the repository and name that in the task",
        )
    given = raw.decode("utf-8", "replace")
    if "\0" in given:
        raise UsageError("standard input is not text", "say which file is meant, the model can use tools")
    if not given.strip():
        raise UsageError("standard input is empty, so there is nothing to give along", "leave out the -")
    return f"{text}\n\nStandard input:\n{fenced(given)}"


def is_left_unread() -> bool:
    """Whether somebody pipes something in that nobody is going to read. Never waits.

    An open pipe without a byte, as build machines and editors have it, is none; nor is a file that somebody
    else is reading, the list of a `while read` loop say.
    """
    try:
        number = sys.stdin.fileno()
        status = os.fstat(number)
        if stat.S_ISREG(status.st_mode):
            return status.st_size > 0 and os.lseek(number, 0, os.SEEK_CUR) == 0
        return stat.S_ISFIFO(status.st_mode) and _has_bytes(number)
    except (AttributeError, OSError, ValueError):  # none, closed, or put in its place by a test
        return False


def _has_bytes(number: int) -> bool:
    """The end of a pipe can be read too, so that it is readable does not say enough."""
    if not select.select([number], [], [], 0)[0]:
        return False
    try:
        import array
        import fcntl
        import termios
    except ImportError:
        return False
    count = array.array("i", [0])
    fcntl.ioctl(number, termios.FIONREAD, count)
    return count[0] > 0
