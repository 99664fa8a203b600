"""What `agent run` has to do, and until when."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TypeVar

from agent.app.run.output import RunOutput
from agent.app.run.request import RunRequest
from agent.app.servers.early import EarlyReading
from agent.app.servers.serving import Serving
from agent.core.cancel import InterruptedRunError, halting, unless_cancelled
from agent.core.errors import AgentError, ExitCode
from agent.core.limits import TimeLimit
from agent.headless.task import Task

Result = TypeVar("Result")


class TimeIsUpError(AgentError):
    """The seconds of a run are used up, and no turn is there to say so."""

    exit_code = ExitCode.LIMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is to be done, where and with what. `started` is a time of `time.monotonic()`.

    `early` is what the server was asked to read while the program was loaded. `today` is the date where the
    person is.
    """

    request: RunRequest
    task: Task
    workspace: Path
    serving: Serving
    output: RunOutput
    deadline: TimeLimit
    early: EarlyReading | None = None
    cancel: asyncio.Event = field(default_factory=asyncio.Event)
    started: float = field(default_factory=time.monotonic)
    today: Callable[[], date] = date.today

    async def in_time(self, work: Awaitable[Result], hint: Callable[[], str] = lambda: "") -> Result:
        """The result of `work`. Raises InterruptedRunError or TimeIsUpError if it has to end before.

        Args:
            hint: what to do about it, asked for when time is up.
        """
        async with halting(self.cancel, self.deadline.remaining) as halt:
            try:
                return await unless_cancelled(work, halt)
            except InterruptedRunError:
                if self.cancel.is_set():
                    raise
                raise TimeIsUpError(self.deadline.stop().detail, hint()) from None
