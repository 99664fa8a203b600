"""Branch and number of changed files for a status bar, looked up in the background."""

import asyncio
from pathlib import Path

from agent.repo.git import inspect


class RepoGlance:
    """The state of the repository as it was a moment ago; never waited for by anybody."""

    def __init__(self, workspace: Path) -> None:
        self.branch = ""
        self.changed_files = 0
        self._workspace = workspace
        self._task: asyncio.Task[None] | None = None
        self._again = False

    def refresh(self) -> None:
        """Looks again soon. Many calls in a row lead to one look now and one after it."""
        if self._task is not None and not self._task.done():
            self._again = True
            return
        self._task = asyncio.create_task(self._look())

    async def settled(self, seconds: float | None = None) -> None:
        """Waits for the look that is under way, if any; so many seconds at most."""
        if self._task is not None:
            await asyncio.wait([self._task], timeout=seconds)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
        await self.settled()

    async def _look(self) -> None:
        while True:
            self._again = False
            state = await inspect(self._workspace, with_fingerprints=False)
            self.branch = state.branch_or_commit
            self.changed_files = len(state.dirty)
            if not self._again:
                return
