"""Running commands for the model."""

import errno
import os
import shlex
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field, field_validator

from agent.core.confinement import ConfinementError
from agent.core.tool import Access, Tool, ToolContext, ToolResult
from tools._description import description_of
from tools._text.encodings import presentable
from tools._text.paths import reason, shown

if TYPE_CHECKING:
    from agent.core.lifeline import Lifeline
    from tools._process.command import Command, Outcome
    from tools._process.jobs import Control, Job

LONGEST_SECONDS = 600.0
_FIRST_LOOK_SECONDS = 1.0
_LAST_WORDS_SECONDS = 1.0
_LINE_CHARACTERS = 80


class ShellParams(BaseModel):
    command: str
    timeout: int | None = Field(default=None, description="seconds")
    background: bool = False

    @field_validator("command")
    @classmethod
    def _not_in_a_fence(cls, command: str) -> str:
        """A shell takes the backticks of a fence for a substitution, and runs what the command prints."""
        if command.lstrip().startswith("```"):
            raise ValueError("leave out the ``` around the command; nothing was run")
        return command


class ShellTool:
    """Remembers the folder that a command ended in, as a terminal does, and what runs in the background.

    The folder only counts within the workspace, and `acts_as` tells the gate that a command starts in it.
    """

    name = "shell"
    params: type[BaseModel] = ShellParams
    access: Access = "execute"

    def __init__(self) -> None:
        self.description = description_of(self.name)
        self._mark = f"{os.getpid()}-{os.urandom(6).hex()}"
        self._commands = 0
        self._background: dict[int, Lifeline | None] = {}
        self._jobs: dict[int, Job] = {}
        self._folder: Path | None = None
        self._workspace: Path | None = None

    def acts_as(self, params: ShellParams) -> tuple[Tool, Mapping[str, Any]] | None:
        """What the gate has to judge: the command in the folder where it will run."""
        if _control(params.command):
            return self, {"command": "true"}  # only about what was allowed and started before
        if self._folder is None or self._workspace is None:
            return None
        name = shown(self._workspace, self._folder)
        inside = shlex.quote(f"./{name}" if name.startswith(("-", "~")) else name)
        return self, {**params.model_dump(exclude_none=True), "command": f"cd {inside}\n{params.command}"}

    async def run(self, params: ShellParams, context: ToolContext) -> ToolResult:
        if not params.command.strip():
            return ToolResult("command is empty. Give a command to run.", is_error=True)
        from tools._process.command import Command, NotStartedError

        seconds = _seconds(params.timeout, context.shell_timeout_seconds)
        control = _control(params.command)
        if control:
            return await self._controlled(control, seconds)
        words = (_shell(context), "-c", params.command)
        try:
            arguments = await context.confinement.confined(words, outlives=True)
        except ConfinementError as refused:
            return ToolResult(f"The command was not started: {refused}. {refused.hint}", is_error=True)
        self._commands += 1
        command = Command(
            arguments=arguments,
            folder=self._start_folder(context.workspace),
            environment=context.environment,
            mark=f"{self._mark}.{self._commands}",
        )
        try:
            if params.background:
                return await self._in_background(params.command, command, context)
            return await self._in_foreground(command, seconds, context)
        except NotStartedError as refused:
            self._folder = None
            return ToolResult(_why_not(refused.cause), is_error=True)

    @property
    def leaves_running(self) -> bool:
        """Whether something that commands started goes on."""
        if not self._background and not self._jobs:
            return False
        from tools._process.group import is_alive

        return any(map(is_alive, self._background)) or any(job.is_running for job in self._jobs.values())

    def stop_background(self) -> None:
        """Ends what commands left running. For the end of a session."""
        if not self._commands:
            return
        from tools._process.group import end_all

        end_all({*self._background, *(job.leader for job in self._jobs.values())}, self._mark)
        for lifeline in self._background.values():
            if lifeline is not None:
                lifeline.release()
        self._background.clear()
        for job in self._jobs.values():
            job.wait(_FIRST_LOOK_SECONDS)
            job.let_go()

    def start_over(self) -> None:
        """A fresh attempt at the task begins in the workspace again, with nothing running."""
        self.stop_background()
        self._jobs.clear()
        self._folder = None

    async def _in_foreground(self, command: "Command", seconds: float, context: ToolContext) -> ToolResult:
        from tools._process.command import run_command
        from tools._process.output import CommandOutput

        output = CommandOutput(context.spill_folder, context.emit)
        try:
            outcome = await run_command(command, seconds, output.feed)
        finally:
            output.close()
        text = output.for_model() or "(no output)"
        if outcome.timed_out:
            return ToolResult(
                f"{text}\nstopped: not done after {seconds:g} seconds. "
                "Give a longer timeout, or set background if it is a server.",
                is_error=True,
            )
        if outcome.background:
            self._background[outcome.leader] = outcome.lifeline
            text += "\n(a process goes on in the background)"
        moved = self._moved(outcome, context.workspace)
        remark = context.confinement.explanation(text) if outcome.returncode else ""
        return ToolResult("\n".join(filter(None, [text, remark, _exit_text(outcome.returncode) + moved])))

    def _start_folder(self, workspace: Path) -> Path:
        self._workspace = workspace
        if self._folder is not None and not _is_within(self._folder, workspace):
            self._folder = None  # it was deleted, or has become a link to somewhere else
        return self._folder or workspace

    def _moved(self, outcome: "Outcome", workspace: Path) -> str:
        """Remembers where the shell was, and what to tell the model about it."""
        if outcome.folder is None or outcome.folder == (self._folder or workspace):
            return "" if self._folder is None else f" (in {presentable(shown(workspace, self._folder))})"
        if not _is_within(outcome.folder, workspace):
            self._folder = None
            return " (the next command starts in the workspace again)"
        self._folder = outcome.folder if outcome.folder != workspace else None
        return f" (now in {presentable(shown(workspace, outcome.folder))})"

    async def _in_background(self, line: str, command: "Command", context: ToolContext) -> ToolResult:
        import asyncio

        from tools._process.jobs import Job

        number = len(self._jobs) + 1
        job = self._jobs[number] = Job(number, line, command, context.spill_folder)
        await asyncio.to_thread(job.wait, _FIRST_LOOK_SECONDS)
        result = _report(job)
        if job.is_running:
            result += (
                f"\n`jobs {number}` shows its next output, `wait %{number}` waits, `kill %{number}` ends it."
            )
        return ToolResult(result)

    async def _controlled(self, control: "Control", seconds: float) -> ToolResult:
        import asyncio

        if control.number is None:
            lines = [f"{_state(job)}: {_short(job.line)}" for job in self._jobs.values()]
            return ToolResult("\n".join(lines) or "(no jobs)")
        job = self._jobs.get(control.number)
        if job is None:
            known = ", ".join(str(number) for number in self._jobs) or "none"
            return ToolResult(f"There is no job {control.number}. Jobs: {known}.", is_error=True)
        if control.action == "end":
            from tools._process.group import end_all

            await asyncio.to_thread(end_all, (job.leader,), job.mark)
            await asyncio.to_thread(job.wait, _FIRST_LOOK_SECONDS)
        elif control.action == "wait":
            await _ended(job, seconds)
        if not job.is_running:  # its last words may not be read yet
            await asyncio.to_thread(job.wait, _LAST_WORDS_SECONDS)
        return ToolResult(_report(job))


async def _ended(job: "Job", seconds: float) -> None:
    """Waits in short turns, so that no thread is left waiting when this is cancelled."""
    import asyncio

    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while loop.time() < until and job.is_running:
        await asyncio.to_thread(job.wait, min(0.2, max(0.0, until - loop.time())))


def _report(job: "Job") -> str:
    """State of a job and what it has printed since it was looked at last."""
    text = job.news() or "(no new output)"
    kept = f"\nall output: {job.kept_in}" if job.kept_in else ""
    return f"{text}\n{_state(job)}{kept}"


def _state(job: "Job") -> str:
    if job.is_running:
        return f"job {job.number} runs for {job.seconds} s"
    returncode = job.returncode
    return f"job {job.number} has ended, {_exit_text(returncode if returncode is not None else 0)}"


def _short(line: str) -> str:
    line = " ".join(line.split())
    return line if len(line) <= _LINE_CHARACTERS else f"{line[:_LINE_CHARACTERS]}…"


def _control(command: str) -> "Control | None":
    if not command.strip().startswith(("jobs", "kill", "fg", "wait")):
        return None
    from tools._process.jobs import control_in

    return control_in(command)


def _is_within(folder: Path, workspace: Path) -> bool:
    try:
        return folder.resolve() == folder and folder.is_relative_to(workspace) and folder.is_dir()
    except OSError:
        return False


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
