"""Fills the menu above the input field."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from agent.core.errors import AgentError
from agent.ui.commands.catalogue import CustomCommand, choices, custom_choices
from agent.ui.entry.completion import Completable, mention, with_folders
from agent.ui.entry.fuzzy import best
from agent.ui.widgets.menu import Choice, Menu

MOST_FILES = 40
FRESH_SECONDS = 15.0

ListFiles = Callable[[], Awaitable[Sequence[str]]]
ListDocuments = Callable[[], Awaitable[Sequence[str]]]
ListCommands = Callable[[], Awaitable[Sequence[CustomCommand]]]


class Completer:
    """Commands at once, files as soon as they are listed and matched in a thread.

    `is_current` says whether a target still stands at the cursor, `clock` is monotonic seconds.
    """

    def __init__(
        self,
        menu: Menu,
        list_files: ListFiles,
        list_commands: ListCommands,
        is_current: Callable[[Completable], bool],
        clock: Callable[[], float],
        list_documents: ListDocuments | None = None,
    ) -> None:
        self._menu = menu
        self._list_files = list_files
        self._list_commands = list_commands
        self._custom: Sequence[CustomCommand] = ()
        self._custom_at: float | None = None
        self._is_current = is_current
        self._clock = clock
        self._list_documents = list_documents
        self._names: Sequence[str] = ()
        self._listed_at: float | None = None
        self._listing: asyncio.Task[None] | None = None

    async def complete(self, target: Completable | None) -> None:
        if target is None:
            self._menu.close()
        elif target.kind == "command":
            await self._complete_command(target)
        else:
            await self._complete_file(target)

    async def _complete_command(self, target: Completable) -> None:
        """Built-in commands at once; those of the project and the person's own as soon as they are known."""
        self._menu.open([*choices(target.query), *custom_choices(target.query, self._custom)], target)
        if self._custom_at is not None and self._clock() - self._custom_at <= FRESH_SECONDS:
            return
        try:
            rows = await self._list_commands()
        except AgentError:
            return
        self._custom, self._custom_at = rows, self._clock()
        added = custom_choices(target.query, rows)
        if added and self._is_current(target):
            self._menu.open([*choices(target.query), *added], target)

    async def _complete_file(self, target: Completable) -> None:
        if not self._names:
            await self._listed()
        found = await asyncio.to_thread(best, target.query, self._names, MOST_FILES)
        if self._is_current(target):
            self._menu.open([Choice(f"{mention(name)} ", name) for name in found], target)
        if self._listed_at is not None and self._clock() - self._listed_at > FRESH_SECONDS:
            await self._listed()

    async def _listed(self) -> None:
        """Waits for the listing. The next key takes over from who waits; the listing goes on for both."""
        if self._listing is None or self._listing.done():
            self._listing = asyncio.create_task(self._list())
        await asyncio.shield(self._listing)

    async def _list(self) -> None:
        self._listed_at = self._clock()
        try:
            files = await self._list_files()
        except AgentError:
            return
        names = await asyncio.to_thread(with_folders, files)
        self._names = [*names, *await self._documents()]

    async def _documents(self) -> Sequence[str]:
        """Those of MCP servers; a session may have none, and say so."""
        if self._list_documents is None:
            return ()
        try:
            return await self._list_documents()
        except AgentError:
            return ()
