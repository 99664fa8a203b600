"""The panel before the first turn."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from agent.app.services.switching import ProfileSwitch
from agent.core.errors import ModelFileError
from agent.ui.options import Headway, Missing, Opening, Progress
from agent.ui.screens.picker import PickerScreen
from agent.ui.widgets.setup import SetupPanel
from tests.fakes.fake_handle import FakeHandle
from tests.ui.rig import SIZES, Rig, settle, type_text, until

MODEL = Missing(
    what="Model file small.gguf", remedy="goes into /models", download_bytes=98_362_432, can_fetch=True
)
ENGINE = Missing(
    what="The embedded engine is not installed",
    remedy="uv installed this program; type this:",
    command="uv tool install 'dflash-agent[embedded]'",
)
NO_GPU = Missing(what="No GPU was found", remedy="the model runs on the CPU")


class FakeSetup:
    """What can be fetched is no longer missing when it was; with `slow` that lasts until it is stopped.

    `only_for` is the profile that lacks something, if not all do.
    """

    def __init__(
        self,
        *missing: Missing,
        failures: int = 0,
        slow: bool = False,
        lines: tuple[str, ...] = (),
        only_for: str | None = None,
    ):
        self.items = list(missing)
        self._only_for = only_for
        self._failures = failures
        self._lines = lines
        self.fetched: list[str] = []
        self.begun = 0
        self.stopped = 0
        self.is_slow = slow

    async def missing(self, opening: Opening) -> list[Missing]:
        return list(self.items) if self._only_for in (None, opening.profile) else []

    async def fetch(self, opening: Opening, progress: Progress) -> None:
        self.begun += 1
        progress(Headway(name="small.gguf", done=50_000_000, whole=100_000_000))
        try:
            if self.is_slow:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        if self._failures:
            self._failures -= 1
            raise ModelFileError("no connection", "try again")
        self.fetched.append(opening.profile)
        self.items = []

    async def worth_knowing(self, opening: Opening) -> list[str]:
        return list(self._lines)


async def shown(pilot: Pilot[Any], rig: Rig) -> SetupPanel:
    """The panel, after the time in which it does not yet listen to Enter."""
    await until(pilot, lambda: rig.app.main.query(SetupPanel))
    await pilot.pause()
    rig.clock.now += 1
    return rig.app.main.query_one(SetupPanel)


async def says(pilot: Pilot[Any], words: str, panel: SetupPanel) -> None:
    await until(pilot, lambda: words in text_of(panel))


def text_of(panel: SetupPanel) -> str:
    return "\n".join(str(part.render()) for part in panel.query(Static))


async def leave(pilot: Pilot[Any], rig: Rig) -> None:
    await pilot.press("escape")
    await settle(pilot, rig)


@pytest.mark.parametrize("size", SIZES)
async def test_a_missing_model_is_named_with_its_size_before_anything_is_fetched(size: tuple[int, int]):
    setup = FakeSetup(MODEL, NO_GPU)
    rig = Rig(options={"setup": setup})
    async with rig.app.run_test(size=size) as pilot:
        await shown(pilot, rig)
        picture = pilot.app.export_screenshot().replace("&#160;", " ")
        assert "98.4 MB" in picture
        assert "not started" in picture
        assert "No GPU was found" in picture
        assert "sk for something" in picture  # the cursor stands on the first letter
        assert (setup.fetched, rig.openings) == ([], [])
        await leave(pilot, rig)


async def test_enter_fetches_and_opens_the_session():
    setup = FakeSetup(MODEL)
    rig = Rig(options={"setup": setup})
    async with rig.app.run_test() as pilot:
        await shown(pilot, rig)
        await pilot.press("enter")
        await settle(pilot, rig)
        assert (setup.fetched, len(rig.openings)) == ([""], 1)
        assert not rig.app.main.query(SetupPanel)


async def test_an_enter_at_the_moment_in_which_it_appears_fetches_nothing():
    setup = FakeSetup(MODEL)
    rig = Rig(options={"setup": setup})
    async with rig.app.run_test() as pilot:
        await shown(pilot, rig)
        rig.clock.now -= 1
        await pilot.press("enter")
        assert setup.begun == 0
        await leave(pilot, rig)


async def test_a_download_that_fails_can_be_tried_again():
    setup = FakeSetup(MODEL, failures=1)
    rig = Rig(options={"setup": setup})
    async with rig.app.run_test() as pilot:
        panel = await shown(pilot, rig)
        await pilot.press("enter")
        await says(pilot, "no connection", panel)
        await pilot.press("enter")
        await settle(pilot, rig)
        assert setup.fetched == [""]


async def test_escape_stops_a_download_and_enter_goes_on_with_it():
    setup = FakeSetup(MODEL, slow=True)
    rig = Rig(options={"setup": setup})
    async with rig.app.run_test() as pilot:
        panel = await shown(pilot, rig)
        await pilot.press("enter")
        await says(pilot, "50.0 MB of 100 MB, 50 %", panel)
        await pilot.press("escape")
        await says(pilot, "Stopped; what is there is kept.", panel)
        assert (setup.begun, setup.stopped, rig.openings) == (1, 1, [])
        setup.is_slow = False
        await pilot.press("enter")
        await settle(pilot, rig)
        assert setup.fetched == [""]


async def test_escape_opens_the_session_without_the_model():
    rig = Rig(options={"setup": FakeSetup(MODEL)})
    async with rig.app.run_test() as pilot:
        await shown(pilot, rig)
        await leave(pilot, rig)
        assert len(rig.openings) == 1


async def test_what_is_sent_meanwhile_waits_for_the_session():
    setup = FakeSetup(MODEL, slow=True)
    rig = Rig(options={"setup": setup})
    async with rig.app.run_test() as pilot:
        panel = await shown(pilot, rig)
        await type_text(pilot, "quit it")
        await pilot.press("enter")
        await type_text(pilot, "more")
        assert (setup.begun, rig.app.prompt.text) == (0, "more")
        await pilot.press("ctrl+c", "enter")
        await says(pilot, "50 %", panel)
        await type_text(pilot, "rest")
        await pilot.press("escape")
        await says(pilot, "Stopped", panel)
        await leave(pilot, rig)
        assert (rig.handle.prompts, rig.app.prompt.text) == (["quit it"], "rest")


async def test_what_only_the_person_can_do_is_shown_alone_and_looked_for_on_enter():
    setup = FakeSetup(ENGINE)
    rig = Rig(options={"setup": setup})
    async with rig.app.run_test() as pilot:
        panel = await shown(pilot, rig)
        assert "uv tool install 'dflash-agent[embedded]'" in text_of(panel)
        await pilot.press("enter")
        await says(pilot, "This is still missing.", panel)
        setup.items = []
        await pilot.press("enter")
        await settle(pilot, rig)
        assert (setup.begun, len(rig.openings)) == (0, 1)


async def test_a_command_that_opens_another_session_takes_the_panel_away():
    setup = FakeSetup(MODEL, slow=True)
    rig = Rig(options={"setup": setup})
    async with rig.app.run_test() as pilot:
        panel = await shown(pilot, rig)
        await pilot.press("enter")
        await says(pilot, "50 %", panel)
        setup.items = []
        await type_text(pilot, "/new ")
        await pilot.press("enter")
        await settle(pilot, rig)
        assert len(rig.openings) == 1
        assert not rig.app.main.query(SetupPanel)


async def test_a_new_session_offers_again_what_is_still_missing():
    rig = Rig(options={"setup": FakeSetup(MODEL)})
    async with rig.app.run_test() as pilot:
        await shown(pilot, rig)
        await leave(pilot, rig)
        await type_text(pilot, "/new ")
        await pilot.press("enter")
        await shown(pilot, rig)
        assert len(rig.openings) == 1
        await pilot.press("escape")
        await until(pilot, lambda: len(rig.openings) == 2)
        await settle(pilot, rig)
        assert len(rig.openings) == 2


@pytest.mark.parametrize("size", [(80, 24), (60, 18), (200, 60)])
async def test_the_input_field_and_the_keys_stay_in_sight_however_much_is_missing(size: tuple[int, int]):
    rig = Rig(options={"setup": FakeSetup(*[MODEL] * 9, NO_GPU, slow=True)})
    async with rig.app.run_test(size=size) as pilot:
        panel = await shown(pilot, rig)
        await pilot.press("enter")
        await says(pilot, "50 %", panel)
        await type_text(pilot, "one\ntwo\nthree\nfour")
        await pilot.pause()
        for name in ("#prompt", "#setup-keys", "#setup-progress", "#setup-heading", "#status"):
            part = rig.app.main.query_one(name)
            assert part.region.height, name
            assert rig.app.main.region.contains_region(part.region), name
        await pilot.press("escape", "ctrl+c")
        await says(pilot, "Stopped", panel)
        await leave(pilot, rig)


async def test_quitting_stops_a_download():
    setup = FakeSetup(MODEL, slow=True)
    rig = Rig(options={"setup": setup})
    async with rig.app.run_test() as pilot:
        panel = await shown(pilot, rig)
        await pilot.press("enter")
        await says(pilot, "50 %", panel)
        await pilot.press("ctrl+d")
    assert setup.stopped == 1


async def test_nothing_missing_shows_no_panel():
    rig = Rig(options={"setup": FakeSetup()})
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        assert not rig.app.main.query(SetupPanel)


async def test_what_the_model_answers_without_is_a_line_of_the_conversation():
    rig = Rig(options={"setup": FakeSetup(lines=("git is not installed: edits work",))})
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        assert rig.lines == ["git is not installed: edits work"]
        assert not rig.app.main.query(SetupPanel)


SWITCH = ProfileSwitch(
    profile="big", model="big.gguf", tokens=3000, seconds=None, measured_with="", is_running=False
)


async def ask_for_big(pilot: Pilot[Any], rig: Rig) -> SetupPanel:
    """Agrees to go over to another profile, whose model is not there."""
    await settle(pilot, rig)
    rig.app.submit("/model big", "now")
    await until(pilot, lambda: isinstance(rig.app.screen, PickerScreen))
    await pilot.press("enter")
    return await shown(pilot, rig)


async def test_a_model_that_is_not_there_is_offered_before_it_takes_over():
    setup = FakeSetup(MODEL, only_for="big")
    rig = Rig(handles=[FakeHandle(services={"profile": SWITCH})], options={"setup": setup})
    async with rig.app.run_test() as pilot:
        panel = await ask_for_big(pilot, rig)
        assert "Before big can answer" in text_of(panel)
        assert rig.handle.commands == [("profile", {"name": "big"})]
        await pilot.press("enter")
        await settle(pilot, rig)
        assert setup.fetched == ["big"]
        assert rig.handle.commands[-1] == ("profile", {"name": "big", "apply": True})
        assert (rig.handle.is_closed, len(rig.openings)) == (False, 1)


async def test_the_present_model_goes_on_where_the_other_is_not_wanted_after_all():
    setup = FakeSetup(MODEL, only_for="big")
    rig = Rig(handles=[FakeHandle(services={"profile": SWITCH})], options={"setup": setup})
    async with rig.app.run_test() as pilot:
        await ask_for_big(pilot, rig)
        await leave(pilot, rig)
        assert rig.lines == ["big still lacks something; small goes on answering."]
        assert rig.handle.commands == [("profile", {"name": "big"})]


async def test_another_profile_can_be_chosen_while_that_of_the_first_start_lacks_its_model():
    setup = FakeSetup(MODEL, only_for="")
    rig = Rig(options={"setup": setup, "services": {"profiles": known_profiles}})
    async with rig.app.run_test() as pilot:
        await shown(pilot, rig)
        rig.app.submit("/model other", "now")
        await settle(pilot, rig)
        assert [opening.profile for opening in rig.openings] == ["other"]
        assert not rig.app.main.query(SetupPanel)


async def known_profiles(_arguments: Mapping[str, Any]) -> list[str]:
    return []
