"""Runs one hook: JSON on its standard input, a decision on its standard output, a limit on its time."""

import json
import tempfile
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from agent.core.command import Output, exit_text, run_shell
from agent.core.confinement import Confinement
from agent.core.outside_text import tidy
from agent.hooks.spec import HookSpec

MOST_OUTPUT_BYTES = 64 * 1024
MOST_FEEDBACK_CHARACTERS = 4000
BLOCKING_EXIT_CODE = 2


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """What a hook decided. `problem` is a line for people where it failed, which never blocks anything."""

    blocked: bool = False
    feedback: str = ""
    problem: str = ""
    timed_out: bool = False


async def run_hook(
    spec: HookSpec,
    payload: Mapping[str, Any],
    folder: Path,
    environment: Mapping[str, str],
    confinement: Confinement | None = None,
) -> HookAnswer:
    """Runs the command in a shell, in a process group of its own, of which nothing is left afterwards.

    Exit code 2 blocks, with standard error as feedback. Otherwise an exit code of 0 and a JSON object
    `{"decision": "allow" | "block", "feedback": "..."}` on standard output decide; other output is ignored.
    """
    keeper = confinement if spec.sandbox else None
    try:
        with tempfile.TemporaryFile() as stdin:  # no disk may have room for it
            stdin.write(json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
            stdin.seek(0)
            code, out, err = await _execute(spec, stdin, folder, environment, keeper)
    except OSError as error:
        return HookAnswer(problem=f"cannot be started: {error.strerror or error}")
    except ValueError:
        return HookAnswer(problem="cannot be started: it contains a character that no command can have")
    if code is None:
        return HookAnswer(problem=f"did not end within {spec.seconds:g} s and was ended", timed_out=True)
    return _answer(code, out, err)


async def _execute(
    spec: HookSpec,
    stdin: IO[bytes],
    folder: Path,
    environment: Mapping[str, str],
    confinement: Confinement | None,
) -> tuple[int | None, str, str]:
    """Exit code (None after the time limit), standard output and standard error."""
    with closing(Output(MOST_OUTPUT_BYTES)) as out, closing(Output(MOST_OUTPUT_BYTES)) as err:
        code = await run_shell(
            spec.command,
            folder,
            environment,
            spec.seconds,
            out=out,
            err=err,
            stdin=stdin,
            confinement=confinement,
        )
        return code, await out.text(), await err.text()


def _answer(code: int, out: str, err: str) -> HookAnswer:
    if code == BLOCKING_EXIT_CODE:
        return HookAnswer(blocked=True, feedback=_feedback(err or out))
    if code != 0:
        last = (err.strip() or out.strip()).rpartition("\n")[2]
        return HookAnswer(
            problem=f"failed ({exit_text(code)})" + (f": {_feedback(last)[:200]}" if last else "")
        )
    text = out.strip()
    if not text.startswith("{"):
        return HookAnswer()
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return HookAnswer(problem="wrote JSON that cannot be read")
    if not isinstance(said, dict):
        return HookAnswer()
    decision, feedback = said.get("decision", "allow"), said.get("feedback", "")
    if decision not in ("allow", "block"):
        return HookAnswer(problem='its "decision" is neither "allow" nor "block"')
    if not isinstance(feedback, str):
        return HookAnswer(blocked=decision == "block", problem='its "feedback" is no text')
    return HookAnswer(blocked=decision == "block", feedback=_feedback(feedback))


def _feedback(text: str) -> str:
    plain = tidy(text).strip()
    if len(plain) <= MOST_FEEDBACK_CHARACTERS:
        return plain
    return f"{plain[:MOST_FEEDBACK_CHARACTERS]}\n[…]"
