"""The screen before the first turn."""

import pytest
from textual.events import Key
from textual.widgets import Static

from agent.core.errors import ModelFileError
from agent.ui.options import Missing, Opening, Progress
from agent.ui.screens.setup import SetupScreen
from tests.ui.rig import SIZES, Rig, rest, settle

MODEL = Missing(
    what="Model file small.gguf", remedy="goes into /models", download_bytes=98_362_432, can_fetch=True
)
NO_GPU = Missing(what="No GPU was found", remedy="the model runs on the CPU")


class FakeSetup:
    def __init__(self, *missing: Missing, failures: int = 0) -> None:
        self._missing = list(missing)
        self._failures = failures
        self.fetched: list[str] = []

    async def missing(self, opening: Opening) -> list[Missing]:
        return self._missing

    async def fetch(self, opening: Opening, progress: Progress) -> None:
        progress("small.gguf", 50, 100)
        if self._failures:
            self._failures -= 1
            raise ModelFileError("no connection", "try again")
        self.fetched.append(opening.profile)


async def shown(pilot) -> SetupScreen:
    for _ in range(100):
        await pilot.pause()
        screen = pilot.app.screen
        if isinstance(screen, SetupScreen) and screen.query("#setup-list"):
            await pilot.pause()
            return screen
    raise AssertionError("the screen was not shown")


@pytest.mark.parametrize("size", SIZES)
async def test_a_missing_model_is_named_with_its_size_before_anything_is_fetched(size: tuple[int, int]):
    setup = FakeSetup(MODEL, NO_GPU)
    rig = Rig(options={"setup": setup})
    async with rig.app.run_test(size=size) as pilot:
        await shown(pilot)
        picture = pilot.app.export_screenshot().replace("&#160;", " ")
        assert "98.4 MB" in picture
        assert "No GPU was found" in picture
        assert (setup.fetched, rig.openings) == ([], [])
        await pilot.press("escape")
        await rest(pilot)


async def test_enter_fetches_and_opens_the_session():
    setup = FakeSetup(MODEL)
    rig = Rig(options={"setup": setup})
    async with rig.app.run_test() as pilot:
        await shown(pilot)
        await pilot.press("enter")
        await settle(pilot, rig)
        assert (setup.fetched, len(rig.openings)) == ([""], 1)


async def test_a_download_that_fails_can_be_tried_again():
    setup = FakeSetup(MODEL, failures=1)
    rig = Rig(options={"setup": setup})
    async with rig.app.run_test() as pilot:
        await shown(pilot)
        await pilot.press("enter")
        await pilot.pause()
        await pilot.pause()
        assert "no connection" in pilot.app.export_screenshot().replace("&#160;", " ")
        await pilot.press("enter")
        await settle(pilot, rig)
        assert setup.fetched == [""]


async def test_escape_opens_the_session_without_the_model():
    rig = Rig(options={"setup": FakeSetup(MODEL)})
    async with rig.app.run_test() as pilot:
        await shown(pilot)
        await pilot.press("escape")
        await settle(pilot, rig)
        assert len(rig.openings) == 1


async def test_whoever_is_typing_goes_on_typing_and_fetches_nothing():
    setup = FakeSetup(MODEL)
    rig = Rig(options={"setup": setup})
    async with rig.app.run_test() as pilot:
        screen = await shown(pilot)
        await pilot.press(*"quit", "space", *"it", "enter", *"more")
        await pilot.pause()
        assert (setup.fetched, rig.app.prompt.text) == ([], "more")
        assert str(screen.query_one("#setup-typed", Static).render()) == "typed  more  Enter sends it"
        await pilot.press("escape")
        await settle(pilot, rig)
        assert (rig.handle.prompts, rig.app.prompt.text) == (["quit it"], "more")


async def test_keys_of_one_burst_are_typed_before_the_enter_among_them_counts():
    setup = FakeSetup(MODEL)
    rig = Rig(options={"setup": setup})
    async with rig.app.run_test() as pilot:
        screen = await shown(pilot)
        for key, character in (("g", "g"), ("o", "o"), ("enter", "\r")):
            screen.post_message(Key(key, character))
        await pilot.pause()
        await pilot.press("escape")
        await settle(pilot, rig)
        assert (setup.fetched, rig.handle.prompts) == ([], ["go"])


async def test_nothing_missing_shows_no_screen():
    rig = Rig(options={"setup": FakeSetup()})
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        assert not isinstance(pilot.app.screen, SetupScreen)
