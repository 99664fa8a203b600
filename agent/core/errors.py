"""The errors a person can meet. Each says what happened; `hint` says what to do."""

from enum import IntEnum


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
