"""Shows now and then that a run goes on, where no event does."""

import asyncio
from collections.abc import Callable

from agent.app.run.output import RunOutput
from agent.app.servers.slot_queue import Tasks, tasks_at_work, waits_for
from agent.server.record import Record

_BEAT_SECONDS = 1.0


class LifeSigns:
    """Use `run` as a task that is cancelled in the end. `why_busy` is asked where the server says nothing."""

    def __init__(self, output: RunOutput, beat_seconds: float = _BEAT_SECONDS) -> None:
        self.why_busy: Callable[[], str] = lambda: ""
        self._output = output
        self._beat_seconds = beat_seconds

    async def run(self) -> None:
        """Never returns."""
        while True:
            await asyncio.sleep(self._beat_seconds)
            busy = await asyncio.to_thread(self.why_busy) if self._output.is_unanswered else ""
            self._output.tick(busy)


class SlotQueue:
    """Looks at the slots of a server of ours, one time after the other."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._before: Tasks = frozenset()

    def __call__(self) -> str:
        """What a request waits for; empty where nobody knows."""
        from agent.server.probe import slots_of

        slots = slots_of(self._record) or []
        words = waits_for(slots, self._before)
        self._before = tasks_at_work(slots)
        return words
