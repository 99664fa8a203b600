"""Shows now and then that a run goes on, where no event does."""

import asyncio
from collections.abc import Callable

from agent.app.output import RunOutput
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


def busy_words(busy: int | None, slots: int) -> str:
    """Why a request waits in line; empty where a slot is free, or nobody knows."""
    if busy is None or busy < slots:
        return ""
    return (
        "the only slot of the server is busy" if slots == 1 else f"all {slots} slots of the server are busy"
    )


def why_busy(record: Record, slots: int) -> str:
    """Asks a server of ours; empty where it does not answer at once."""
    from agent.server.probe import busy_slots

    return busy_words(busy_slots(record), slots)
