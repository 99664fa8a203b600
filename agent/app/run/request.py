"""What a person asked for on the command line, turned into a task in a folder."""

import math
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from agent.app.run.given_input import UNREAD, is_left_unread, with_standard_input
from agent.core.errors import UsageError
from agent.headless.task import MAX_TASK_BYTES, Task, parse_task, read_task_file

OutputForm = Literal["text", "json", "jsonl"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """`None` and `()` mean that a flag was not given. Seconds for times.

    `task` is a file, or `-` for standard input, which beside a `prompt` goes along with that. `resume` is
    an earlier session that goes on, `last` the newest; with `fork` a copy of it does.
    """

    task: str | None
    prompt: str | None
    directory: Path | None = None
    output: OutputForm = "text"
    branch: str | None = None
    commit: bool = False
    profile: str | None = None
    check: str | None = None
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    max_steps: int | None = None
    max_tool_calls: int | None = None
    max_seconds: float | None = None
    resume: str | None = None
    fork: bool = False


def resolve_directory(request: RunRequest) -> Path:
    """The folder to work in, the current one unless another is asked for. Raises UsageError."""
    hint = "give an existing folder with -C DIR"
    try:
        asked = request.directory or Path.cwd()
        directory = asked.resolve()
        exists, is_folder = directory.exists(), directory.is_dir()
    except FileNotFoundError:
        raise UsageError("the current folder is gone", hint) from None
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot use the folder {request.directory}: {reason}", hint) from None
    if not exists:
        raise UsageError(f"there is no folder {asked}", hint)
    if not is_folder:
        raise UsageError(f"{asked} is not a folder", "give the repository's folder with -C DIR")
    if not os.access(directory, os.R_OK | os.X_OK):
        raise UsageError(f"the folder {asked} cannot be read", "check its permissions")
    return directory


def resolve_task(request: RunRequest) -> Task:
    """Reads the task and lays the flags over its front matter. Raises UsageError."""
    if request.fork and request.resume is None:
        raise UsageError("--fork needs --resume ID or --continue", "a run is a session of its own")
    task = _read(request)
    if request.max_steps is not None and request.max_steps < 1:
        hint = "leave it out to use the setting limits.max_steps"
        raise UsageError(f"--max-steps has to be at least 1, not {request.max_steps}", hint)
    if request.max_tool_calls is not None and request.max_tool_calls < 1:
        hint = "leave it out to use the setting limits.max_tool_calls"
        raise UsageError(f"--max-tool-calls has to be at least 1, not {request.max_tool_calls}", hint)
    if request.max_seconds is not None and not 0 < request.max_seconds < math.inf:
        hint = "leave it out to use the setting limits.max_seconds"
        raise UsageError(f"--max-seconds has to be above 0, not {request.max_seconds:g}", hint)
    if request.check is not None and not request.check.strip():
        raise UsageError("--check is empty", "give a command that has to pass, or leave it out")
    return replace(
        task,
        profile=request.profile or task.profile,
        check=request.check or task.check,
        allow=task.allow + request.allow,
        deny=task.deny + request.deny,
        max_steps=request.max_steps or task.max_steps,
        max_tool_calls=request.max_tool_calls or task.max_tool_calls,
        max_seconds=request.max_seconds or task.max_seconds,
    )


def _read(request: RunRequest) -> Task:
    if request.prompt is not None:
        return _read_words(request.prompt, request.task)
    if request.task is None:
        hint = "agent run task.md, agent run -p 'what to do', or - for stdin"
        if request.resume is not None:
            hint = "a session goes on with a new task: add -p 'what comes next', a file, or - for stdin"
        raise UsageError("no task was given", hint)
    if request.task == "-":
        if sys.stdin is None or sys.stdin.closed:
            raise UsageError("standard input is closed, so there is no task to read", "use -p or a file")
        if sys.stdin.isatty():
            print("Type the task, then Ctrl-D on a line of its own.", file=sys.stderr)
        return parse_task(sys.stdin.buffer.read(MAX_TASK_BYTES + 1), "standard input")
    return read_task_file(Path(request.task))


def _read_words(prompt: str, beside: str | None) -> Task:
    """The text of -p, with standard input below it where `beside` is `-`."""
    if beside not in (None, "-"):
        raise UsageError("both a task file and -p were given", "use one of them")
    task = parse_task(prompt.encode("utf-8", "surrogateescape"), "the text of -p")
    if beside == "-":
        return replace(task, text=with_standard_input(task.text))
    if is_left_unread():
        print(UNREAD, file=sys.stderr)
    return task
