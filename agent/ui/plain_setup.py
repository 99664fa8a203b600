"""What keeps the model from answering, in line mode: said in lines, and got where a person agrees."""

import asyncio
from collections.abc import Awaitable, Callable

from agent.core.errors import AgentError
from agent.ui.conversation.text import visible
from agent.ui.options import Headway, Missing, Opening, Setup
from agent.ui.text import size

STEP_PERCENT = 10
STEP_SECONDS = 10.0
"""How often a line tells of work whose end is not known."""

_YES = ("y", "yes", "1")
_NO = ("n", "no", "0")


class PlainSetup:
    """`say` prints a line, `ask` gives the next line that is typed, None at the end of the input.

    Without `ask` nobody is there to agree: what is missing is said, and nothing is fetched.
    """

    def __init__(
        self,
        setup: Setup | None,
        say: Callable[[str], None],
        ask: Callable[[], Awaitable[str | None]] | None,
        clock: Callable[[], float],
    ) -> None:
        self._setup = setup
        self._say = say
        self._ask = ask
        self._clock = clock
        self._work: asyncio.Task[None] | None = None
        self._told: tuple[str, int, float] = ("", -1, 0.0)

    async def run(self, opening: Opening) -> bool:
        """Says what is missing for `opening` and offers to get it; whether all is there in the end."""
        setup = self._setup
        if setup is None:
            return True
        while missing := await setup.missing(opening):
            self._say("Before the model can answer:")
            for item in missing:
                self._say(f"- {_described(item)}")
            if self._ask is None or not await self._agrees(missing):
                return False
            if any(item.can_fetch for item in missing):
                await self._fetch(setup, opening)
        return True

    async def tell_the_rest(self, opening: Opening) -> None:
        """What is missing although the model answers without it."""
        if self._setup is not None:
            for line in await self._setup.worth_knowing(opening):
                self._say(f"- {visible(line)}")

    def stop(self) -> bool:
        """Ends what is being fetched, if something is."""
        if self._work is None:
            return False
        self._work.cancel()
        return True

    async def _agrees(self, missing: list[Missing]) -> bool:
        fetched = [item for item in missing if item.can_fetch]
        amount = sum(item.download_bytes for item in fetched)
        known = f" ({size(amount)})" if amount else ""
        first = f"y gets it{known}" if fetched else "Enter looks again"
        yes = _YES if fetched else ("", *_YES)
        while self._ask is not None:
            self._say(f"{first}, n goes on without")
            line = await self._ask()
            if line is None or line.strip().lower() in _NO:
                return False
            if line.strip().lower() in yes:
                return True
        return False

    async def _fetch(self, setup: Setup, opening: Opening) -> None:
        self._told = ("", -1, self._clock())
        self._say("Ctrl+C stops it; it goes on later.")
        loop = asyncio.get_running_loop()

        def report(headway: Headway) -> None:
            loop.call_soon_threadsafe(self._show, headway)

        work = loop.create_task(setup.fetch(opening, report))
        self._work = work
        try:
            await asyncio.shield(work)
        except AgentError as error:
            self._say(f"{error.message}\n{error.hint}".strip())
        except asyncio.CancelledError:
            if not work.cancelled():  # it is this task that was to end
                work.cancel()
                raise
            self._say("Stopped; what is there is kept.")
        finally:
            self._work = None

    def _show(self, headway: Headway) -> None:
        """A line for each tenth, or now and then where no end is known: each line is read out."""
        if self._work is None:
            return
        name, tenth, told_at = self._told
        percent = 100 * headway.done // headway.whole if headway.whole else 0
        now = self._clock()
        is_next = percent // STEP_PERCENT > tenth if headway.whole else now - told_at >= STEP_SECONDS
        is_other_file = headway.is_bytes and name != headway.name
        if not is_next and not is_other_file:
            return
        self._told = (headway.name, percent // STEP_PERCENT, now)
        self._say(f"{visible(headway.name)}{_amount(headway, percent)}")


def _amount(headway: Headway, percent: int) -> str:
    if not headway.whole:
        return f" {size(headway.done)}" if headway.is_bytes else ""
    amount = f" {size(headway.done)} of {size(headway.whole)}," if headway.is_bytes else ""
    return f"{amount} {percent} %"


def _described(item: Missing) -> str:
    """In one line, with what can be typed for it."""
    amount = f" ({size(item.download_bytes)})" if item.download_bytes else ""
    remedy = f": {visible(item.remedy)}" if item.remedy else ""
    command = f" `{visible(item.command)}`" if item.command else ""
    return f"{visible(item.what)}{amount}{remedy}{command}"
