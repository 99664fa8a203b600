"""The errors a person can meet. Each says what happened; `hint` says what to do."""

from enum import IntEnum

PLEASE_REPORT = "this should not happen; please report it"
"""The hint where the mistake is this program's own."""


class ExitCode(IntEnum):
    """Process exit codes, a public contract: see docs/headless.md."""

    DONE = 0
    NOT_SOLVED = 1
    USAGE = 2
    LIMIT = 3
    DENIED = 4
    SERVER = 5
    MODEL_FILE = 6
    INTERRUPTED = 130


class AgentError(Exception):
    """Base of everything that is reported as one line instead of a traceback."""

    exit_code = ExitCode.NOT_SOLVED

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


class UsageError(AgentError):
    """A wrong argument, task file or configuration."""

    exit_code = ExitCode.USAGE


class ServerError(AgentError):
    """The model server could not be started, reached or kept alive."""

    exit_code = ExitCode.SERVER


class ModelFileError(AgentError):
    """A model file is missing, incomplete or has the wrong checksum."""

    exit_code = ExitCode.MODEL_FILE


def unexpected(error: Exception, during: str = "") -> str:
    """The message about an exception that nobody thought of; goes with the hint `PLEASE_REPORT`.

    Args:
        error: what was raised.
        during: what was being done, as the end of "unexpected KeyError while ...".
    """
    return f"unexpected {type(error).__name__}{f' while {during}' if during else ''}: {error}"
