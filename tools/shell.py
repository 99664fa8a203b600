"""Running commands for the model."""

import errno
import signal

from pydantic import BaseModel, Field

from agent.core.tool import Access, ToolContext, ToolResult
from tools._description import description_of
from tools._process.group import signal_group
from tools._text.paths import reason

LONGEST_SECONDS = 600.0


class ShellParams(BaseModel):
    command: str
    timeout: int | None = Field(default=None, description="seconds")


class ShellTool:
    name = "shell"
    params: type[BaseModel] = ShellParams
    access: Access = "execute"

    def __init__(self) -> None:
        self.description = description_of(self.name)
        self._background: set[int] = set()

    async def run(self, params: ShellParams, context: ToolContext) -> ToolResult:
        if not params.command.strip():
            return ToolResult("command is empty. Give a command to run.", is_error=True)
        from tools._process.command import NotStartedError, run_command
        from tools._process.output import CommandOutput

        output = CommandOutput(context.spill_folder, context.emit)
        seconds = _seconds(params.timeout, context.shell_timeout_seconds)
        arguments = (_shell(context), "-c", params.command)
        try:
            outcome = await run_command(
                arguments, context.workspace, context.environment, seconds, output.feed
            )
        except NotStartedError as refused:
            return ToolResult(_why_not(refused.cause), is_error=True)
        finally:
            output.close()
        text = output.for_model() or "(no output)"
        if outcome.timed_out:
            return ToolResult(
                f"{text}\nstopped: not done after {seconds:g} seconds. "
                "Give a longer timeout, or end the command with & if it is a server.",
                is_error=True,
            )
        if outcome.background:
            self._background.add(outcome.leader)
            text += "\n(a process goes on in the background)"
        return ToolResult(f"{text}\n{_exit_text(outcome.returncode)}")

    def stop_background(self) -> None:
        """Asks what commands left running in the background to end. For the end of a session."""
        for leader in self._background:
            signal_group(leader, signal.SIGTERM)
        self._background.clear()


def _shell(context: ToolContext) -> str:
    import shutil

    search_path = context.environment.get("PATH")
    return shutil.which("bash", path=search_path) or shutil.which("sh", path=search_path) or "/bin/sh"


def _seconds(asked: int | None, default: float) -> float:
    if not asked or asked < 0:
        return default
    return min(float(asked), max(default, LONGEST_SECONDS))


def _exit_text(returncode: int) -> str:
    if returncode >= 0:
        return f"exit code {returncode}"
    try:
        name = signal.Signals(-returncode).name
    except ValueError:
        name = f"signal {-returncode}"
    return f"exit code {128 - returncode} (killed by {name})"


def _why_not(error: OSError | ValueError) -> str:
    if isinstance(error, ValueError):
        return "The command was not started: it contains a character that no command can have."
    if error.errno == errno.E2BIG:  # in practice a command of more than 128 KiB
        return "The command was not started: it is too long. Write it to a file and run that."
    return f"The command was not started: {reason(error)}."
