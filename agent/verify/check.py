"""Runs the check command of a task and words the outcome for the model."""

import contextlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from agent.core.command import Output, exit_text, run_shell
from agent.core.confinement import Confinement, Unconfined
from agent.core.events import CheckFinished
from agent.core.outside_text import fenced
from agent.core.verifier import Verdict

MAX_OUTPUT_BYTES = 256_000
# A check that takes longer than this is only run when the model says that it is done.
QUICK_SECONDS = 20.0
_NOT_FOUND = 127


class CheckCommand:
    """A shell command that passes when it exits with 0. A `core.verifier.Verifier`."""

    def __init__(
        self,
        command: str,
        folder: Path,
        *,
        environment: Mapping[str, str],
        timeout_seconds: float,
        confinement: Confinement | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.command = command
        self._folder = folder
        self._environment = dict(environment)
        self._timeout = timeout_seconds
        self._confinement: Confinement = confinement or Unconfined()
        self._clock = clock
        self._last_seconds = 0.0

    async def after_change(self) -> Verdict | None:
        """Runs a quick check after each change, so that the model sees what still fails."""
        if self._last_seconds > QUICK_SECONDS:
            return None
        return await self.run()

    async def at_finish(self) -> Verdict | None:
        return await self.run()

    async def run(self) -> Verdict:
        started = self._clock()
        code, output = await self._execute()
        self._last_seconds = self._clock() - started
        passed = code == 0
        text = "" if passed else _digested(output)
        event = CheckFinished(
            command=self.command, passed=passed, text=text, seconds=round(self._last_seconds, 3)
        )
        return Verdict(passed, self._feedback(code, text), event, _cannot_start(code, text))

    def _feedback(self, code: int | None, text: str) -> str:
        if code == 0:
            return f"The check `{self.command}` passes now."
        said = f":\n{fenced(text)}" if text else " without any output."
        if code is None:
            return f"The check `{self.command}` did not end within {self._timeout:g} s{said}"
        return f"The check `{self.command}` fails ({exit_text(code)}){said}"

    async def _execute(self) -> tuple[int | None, str]:
        """Exit code (`None` after the time limit) and output.

        No process of the check's group survives, and none that left it is waited for.
        """
        half = MAX_OUTPUT_BYTES // 2
        with contextlib.closing(Output(half, half)) as output:
            code = await run_shell(
                self.command,
                self._folder,
                self._environment,
                self._timeout,
                out=output,
                confinement=self._confinement,
            )
            text = await output.text()
            remark = self._confinement.explanation(text) if code else ""
            return code, f"{text.rstrip()}\n{remark}" if remark else text


def _digested(output: str) -> str:
    from agent.verify.digest import digest  # most checks pass, and many runs have none

    return digest(output)


def _cannot_start(code: int | None, text: str) -> str:
    """The shell's words about a command that it did not find; 127 alone may come from the command itself."""
    if code != _NOT_FOUND:
        return ""
    return next((line.strip() for line in text.splitlines() if "not found" in line), "")
