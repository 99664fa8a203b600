"""What happens before a session is opened: what it lacks is shown in a panel, and got on Enter."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from agent.ui.options import Opening, Setup

if TYPE_CHECKING:
    from textual.screen import Screen

    from agent.ui.widgets.setup import SetupPanel


class Preparation:
    """Without a `setup` nothing is ever missing."""

    def __init__(
        self,
        setup: Setup | None,
        screen: "Screen[object]",
        tell: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        self._setup = setup
        self._screen = screen
        self._tell = tell
        self._clock = clock
        self.panel: SetupPanel | None = None

    async def run(self, opening: Opening) -> None:
        """Returns when the session may be opened, whether or not all is there then."""
        if self._setup is None or self.panel is not None:
            return
        missing = await self._setup.missing(opening)
        if not missing:
            return
        from agent.ui.widgets.setup import SetupPanel

        self.panel = panel = SetupPanel(self._setup, opening, missing, self._clock)
        try:
            await self._screen.query_one("#bottom").mount(panel, before="#queue")
            await panel.until_put_away()
        finally:
            self.panel = None
            if panel.is_attached:
                await panel.remove()

    async def tell_the_rest(self, opening: Opening) -> None:
        """What is missing although the model answers without it, as lines of the conversation."""
        if self._setup is not None:
            for line in await self._setup.worth_knowing(opening):
                self._tell(line)
