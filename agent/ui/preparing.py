"""Before a session is opened or another profile answers: what is missing is shown, and got on Enter."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from agent.core.errors import UsageError
from agent.ui.options import Missing, Opening, Setup

if TYPE_CHECKING:
    from textual.screen import Screen

    from agent.ui.widgets.setup import SetupPanel


class Preparation:
    """Without a `setup` nothing is ever missing. `changed` is called when the panel came or went."""

    def __init__(
        self,
        setup: Setup | None,
        screen: "Screen[object]",
        tell: Callable[[str], None],
        changed: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        self._setup = setup
        self._screen = screen
        self._tell = tell
        self._changed = changed
        self._clock = clock
        self.panel: SetupPanel | None = None
        self._is_superseded = False
        self._is_gone = asyncio.Event()

    async def run(self, opening: Opening) -> bool:
        """Returns when the session may be opened, whether or not all is there then.

        False if it may not: a command that opens another one came first.
        """
        missing = await self._missing(opening)
        if not missing:
            return True
        if self.panel is not None:
            return False
        await self._offer(opening, missing)
        return not self._is_superseded

    async def is_ready_for(self, profile: str) -> bool:
        """Offers what `profile` lacks while a session is open; whether all of it is there in the end."""
        opening = Opening(profile=profile)
        missing = await self._missing(opening)
        if not missing:
            return True
        if self.panel is not None:
            raise UsageError("something else is being offered already", "Esc closes it")
        return await self._offer(opening, missing, profile) and not self._is_superseded

    async def _missing(self, opening: Opening) -> list[Missing]:
        return await self._setup.missing(opening) if self._setup is not None else []

    async def _offer(self, opening: Opening, missing: list[Missing], instead: str = "") -> bool:
        """Whether all was there when the panel went.

        `instead` is the profile that is to follow on one that answers meanwhile.
        """
        if self._setup is None:
            return True
        from agent.ui.widgets.setup import SetupPanel

        self.panel = panel = SetupPanel(self._setup, opening, missing, self._clock, instead)
        self._is_superseded = False
        self._is_gone.clear()
        try:
            await self._screen.query_one("#bottom").mount(panel, before="#queue")
            self._changed()
            await panel.until_put_away()
        finally:
            if panel.is_attached:
                await panel.remove()
            self.panel = None
            self._is_gone.set()
            self._changed()
        return panel.is_complete

    async def stand_back(self) -> None:
        """Takes the panel away, because a command opens another session."""
        if self.panel is not None:
            self._is_superseded = True
            self.panel.put_away()
            await self._is_gone.wait()

    async def tell_the_rest(self, opening: Opening) -> None:
        """What is missing although the model answers without it, as lines of the conversation."""
        if self._setup is not None:
            for line in await self._setup.worth_knowing(opening):
                self._tell(line)
