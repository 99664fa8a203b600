"""What a run changed by its commands, as opposed to what a person changed in the meantime."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.app.files.commanded import CommandWatch
from agent.app.turns.around import ToolAround
from agent.core.tool import Tool, ToolContext, ToolResult
from agent.core.verifier import Verdict
from agent.session.ledger import SessionLedger
from agent.verify.check import CheckCommand

# File systems take their times from a clock that lags a few milliseconds behind.
_CLOCK_LAG_NS = 50_000_000


@dataclass(slots=True)
class Authorship:
    """Knows when commands of the model ran, so that a file can be told to be theirs by its time.

    The ledger knows what the tools wrote; a formatter or generator that the model starts writes files by
    itself. `watch` keeps what such files were. `clock` gives nanoseconds of the same clock that files get
    their times from, which may be set meanwhile; `steady` those of one that is not.
    """

    ledger: SessionLedger
    watch: CommandWatch | None = None
    clock: Callable[[], int] = time.time_ns
    steady: Callable[[], int] = time.monotonic_ns
    _spans: list[tuple[int, int]] = field(default_factory=list)

    @contextmanager
    def of_a_command(self) -> Iterator[None]:
        """Around a command of the model: what it does to files is the run's own doing."""
        began, began_steadily = self.clock(), self.steady()
        with self.ledger.own_changes():
            try:
                yield
            finally:
                self._note(began, self.clock(), self.steady() - began_steadily)

    def _note(self, began: int, ended: int, took: int) -> None:
        """Where the clock was set in between, files have times of before that, or of after it."""
        self._spans.append((began - _CLOCK_LAG_NS, began + took))
        self._spans.append((ended - took - _CLOCK_LAG_NS, ended))

    @asynccontextmanager
    async def of_a_writing_command(self, goes_on: Callable[[], bool] = lambda: False) -> AsyncIterator[None]:
        """Around a command of the model that may write: what it does to files can be undone.

        `goes_on` tells in the end whether something of it is left in the background.
        """
        if self.watch is None:
            with self.of_a_command():
                yield
            return
        end = self.watch.end
        await _to_its_end(self.watch.begin, end)
        try:
            with self.of_a_command():
                yield
        finally:
            await _to_its_end(lambda: end(goes_on=goes_on()))

    @contextmanager
    def of_the_check(self) -> Iterator[None]:
        """Around the check: a formatter in it is nobody else, but what it builds is not the run's work."""
        with self.ledger.own_changes():
            yield

    def of_the_run(self, changed: Iterable[Path]) -> list[Path]:
        """Those of the changed paths that tools of the run or its commands changed, in order."""
        written = set(self.ledger.changed_files())
        return [path for path in changed if path in written or self.covers(path)]

    def covers(self, path: Path) -> bool:
        """Whether `path` changed while a command of the model ran. A deleted file has no time to tell."""
        try:
            changed = path.lstat().st_ctime_ns
        except OSError:
            return bool(self._spans)
        return any(began <= changed <= ended for began, ended in self._spans)


class OwnCommands(ToolAround):
    """A tool that starts programs, with its changes counted as the run's own."""

    def __init__(
        self, tool: Tool, authorship: Authorship, *, only_reads: Callable[[str], bool] = lambda command: False
    ) -> None:
        super().__init__(tool)
        self._authorship = authorship
        self._only_reads = only_reads

    async def run(self, params: Any, context: ToolContext) -> ToolResult:
        command = getattr(params, "command", None)
        if isinstance(command, str) and await asyncio.to_thread(self._only_reads, command):
            with self._authorship.of_a_command():
                return await self._tool.run(params, context)
        async with self._authorship.of_a_writing_command(self._goes_on):
            return await self._tool.run(params, context)

    def _goes_on(self) -> bool:
        return getattr(self._tool, "leaves_running", False)


class OwnCalls(ToolAround):
    """A tool of an MCP server: what a call of it does to files of the workspace is the run's own doing.

    Not so where its server says that it only reads.
    """

    def __init__(self, tool: Tool, authorship: Authorship) -> None:
        super().__init__(tool)
        self._authorship = authorship

    async def run(self, params: Any, context: ToolContext) -> ToolResult:
        meant = self.acts_as(params)
        tool = meant[0] if isinstance(meant, tuple) else self._tool
        if tool.access == "read" or isinstance(meant, ToolResult):
            return await self._tool.run(params, context)
        async with self._authorship.of_a_writing_command():
            return await self._tool.run(params, context)


async def _to_its_end(work: Callable[[], None], else_undo: Callable[[], None] | None = None) -> None:
    """Runs `work` in a thread, to its end also when cancelled; then `else_undo` too."""
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        if else_undo is not None:
            else_undo()
        raise


@dataclass(frozen=True, slots=True)
class OwnCheck:
    """The check of a task, as a `core.verifier.Verifier` whose changes nobody else is blamed for."""

    check: CheckCommand
    authorship: Authorship

    async def run(self) -> Verdict:
        with self.authorship.of_the_check():
            return await self.check.run()

    async def after_change(self) -> Verdict | None:
        with self.authorship.of_the_check():
            return await self.check.after_change()

    async def at_finish(self) -> Verdict | None:
        return await self.run()
