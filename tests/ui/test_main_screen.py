"""The main screen: sending, steering, interrupting, what is shown."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from textual.geometry import Size

from agent.core.events import (
    AssistantReplied,
    QueueChanged,
    StepStarted,
    TextDelta,
    TurnFinished,
    UserMessageAdded,
)
from agent.core.stats import StepStats
from agent.ui.options import Opening
from agent.ui.screens.turns import TurnsScreen
from agent.ui.widgets.queue_line import QueueLine
from tests.fakes.fake_handle import FACTS, FakeHandle
from tests.ui.rig import SIZES, Rig, rest, settle, type_text, until

DONE = TurnFinished(reason="done", answer="fine", detail="", steps=1, stats=StepStats())


@pytest.mark.parametrize("size", SIZES)
async def test_a_text_is_sent_and_shown_once(size: tuple[int, int]):
    rig = Rig()
    async with rig.app.run_test(size=size) as pilot:
        await settle(pilot, rig)
        await type_text(pilot, "fix it")
        await pilot.press("enter")
        await rest(pilot)
        assert rig.handle.prompts == ["fix it"]
        assert rig.lines == ["> fix it"]
        assert rig.app.prompt.text == ""


@pytest.mark.parametrize("size", SIZES)
async def test_every_part_is_on_the_screen_and_none_covers_another(size: tuple[int, int]):
    rig = Rig()
    async with rig.app.run_test(size=size) as pilot:
        await settle(pilot, rig)
        await type_text(pilot, "/")
        await rest(pilot)
        regions = [rig.app.menu.region, rig.app.prompt.region, rig.app.status.region]
        assert all(region.height > 0 and Size(*size).region.contains_region(region) for region in regions)
        assert regions[0].bottom <= regions[1].y < regions[1].bottom <= regions[2].y
        assert rig.app.status.region.height == 1


async def test_what_is_typed_and_sent_before_the_session_is_there_is_not_lost():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        rig.app.prompt.insert("early")
        rig.app.prompt.action_send()
        rig.app.prompt.insert("and more")
        await settle(pilot, rig)
        assert rig.handle.prompts == ["early"]
        assert rig.app.prompt.text == "and more"


async def test_a_prompt_of_the_command_line_is_sent_first_and_kept_in_the_history():
    rig = Rig(options={"prompt": " fix it "})
    async with rig.app.run_test() as pilot:
        rig.app.prompt.insert("and more")
        rig.app.prompt.action_send()
        await settle(pilot, rig)
        assert rig.handle.prompts == ["fix it", "and more"]
        assert rig.app.past.entries == ["and more", "fix it"]


async def test_a_prompt_of_the_command_line_stands_behind_what_was_said_in_the_session_that_goes_on():
    past = [UserMessageAdded(text="before"), TextDelta(text="said"), DONE]
    handle = FakeHandle(services={"history": past})
    rig = Rig(handles=[handle], options={"prompt": "now this", "opening": Opening(resume="last")})
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        assert handle.prompts == ["now this"]
        assert rig.lines == ["said", "> now this"]


@pytest.mark.parametrize(
    ("line", "service"), [("/diff", "diff"), ("!make test", "shell"), ("/review a.py", "expand")]
)
async def test_a_command_of_the_command_line_waits_for_the_session(line: str, service: str):
    rig = Rig(
        handles=[FakeHandle(services={"diff": "", "shell": "", "expand": "look"})], options={"prompt": line}
    )
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        assert [name for name, _ in rig.handle.commands] == [service]


async def test_enter_steers_while_a_turn_runs():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        rig.handle.know(is_running=True)
        await type_text(pilot, "not so")
        await pilot.press("enter")
        await rest(pilot)
        assert (rig.handle.steered, rig.handle.prompts) == (["not so"], [])
        assert rig.app.query_one(QueueLine).display


async def test_alt_enter_queues_for_after_the_turn():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        rig.handle.know(is_running=True)
        await type_text(pilot, "then this")
        await pilot.press("alt+enter")
        await rest(pilot)
        assert rig.handle.later == ["then this"]


async def test_escape_interrupts_and_gives_queued_text_back_before_what_is_typed():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        rig.handle.know(is_running=True)
        rig.handle.steer("one")
        rig.handle.follow_up("two")
        await type_text(pilot, "three")
        await pilot.press("escape")
        await rest(pilot)
        assert rig.handle.cancelled == 1
        assert rig.app.prompt.text == "one\n\ntwo\nthree"
        assert not rig.app.query_one(QueueLine).display


async def test_what_a_failed_server_never_read_goes_back_to_where_it_was_typed():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        rig.handle.follow_up("never read")
        rig.handle.emit(
            TurnFinished(reason="server_failed", answer="", detail="no server", steps=0, stats=StepStats())
        )
        await rest(pilot)
        assert rig.app.prompt.text == "never read"
        assert rig.handle.take_back_queued() == []


async def test_steered_text_is_shown_when_it_reaches_the_model():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        rig.handle.emit(QueueChanged(), UserMessageAdded(text="steered"))
        await rest(pilot)
        assert isinstance(rig.conversation.events[-1], UserMessageAdded)


async def test_control_c_clears_then_asks_then_quits():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await type_text(pilot, "x")
        await pilot.press("ctrl+c")
        assert rig.app.prompt.text == ""
        await pilot.press("ctrl+c")
        assert rig.app.is_running
        await pilot.press("ctrl+c")
        await rest(pilot)
    assert rig.app.return_value == FACTS.session_id
    assert rig.handle.is_closed


async def test_a_slow_second_control_c_does_not_quit():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await pilot.press("ctrl+c")
        rig.clock.now += 10
        await pilot.press("ctrl+c")
        await rest(pilot)
        assert not rig.handle.is_closed


async def test_an_exclamation_mark_runs_a_shell_command():
    rig = Rig(handles=[FakeHandle(services={"shell": None})])
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        rig.app.submit("!ls -l", "now")
        rig.app.submit("!!secret", "now")
        await rest(pilot)
        assert rig.handle.commands == [
            ("shell", {"command": "ls -l", "context": True}),
            ("shell", {"command": "secret", "context": False}),
        ]


class ShellHandle(FakeHandle):
    """Its commands run until somebody cancels."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.stop = asyncio.Event(), asyncio.Event()

    async def command(self, name: str, arguments: Mapping[str, Any]) -> Any:
        if name == "shell":
            self.begun.set()
            await self.stop.wait()

    def cancel(self) -> None:
        super().cancel()
        self.stop.set()


async def test_control_c_interrupts_a_command_of_the_persons_own():
    handle = ShellHandle()
    rig = Rig(handles=[handle])
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await pilot.press("ctrl+c")
        assert handle.cancelled == 0
        rig.app.submit("!sleep 30", "now")
        await until(pilot, handle.begun.is_set)
        rig.clock.now += 10
        await pilot.press("ctrl+c")
        await rest(pilot)
        assert handle.stop.is_set()


async def test_a_service_that_is_not_there_is_said_in_a_sentence():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        rig.app.submit("/bench", "now")
        rig.app.submit("/undo", "now")
        await rest(pilot)
        assert rig.lines == ["this session has no service 'bench'", "this session has no service 'undo'"]


async def test_shift_tab_goes_through_the_modes():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await pilot.press("shift+tab")
        await rest(pilot)
        assert rig.handle.facts.mode == "accept-edits"


async def test_a_flood_of_text_leaves_keys_their_turn():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        rig.handle.emit(StepStarted(step=1), *[TextDelta(text="x") for _ in range(20_000)])
        await type_text(pilot, "still here")
        assert rig.app.prompt.text == "still here"


async def test_the_last_reply_is_copied():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        rig.handle.emit(AssistantReplied(text="the answer", reasoning=""))
        await rest(pilot)
        rig.app.submit("/copy", "now")
        await rest(pilot)
        assert rig.lines[0].startswith("Copied the last reply (10 characters)")
        assert any("\x1b]52;" in sequence for sequence in rig.sent)


async def test_a_long_turn_that_ends_rings_and_a_short_one_does_not():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        for seconds in (1, 60):
            rig.handle.emit(StepStarted(step=1))
            await rest(pilot)
            rig.clock.now += seconds
            rig.handle.emit(DONE)
            await rest(pilot)
        assert rig.sent == ["\a"]


async def test_the_turns_are_shown_and_saved(tmp_path: Path):
    rig = Rig(options={"state_folder": tmp_path})
    async with rig.app.run_test(size=(120, 40)) as pilot:
        await settle(pilot, rig)
        rig.handle.emit(StepStarted(step=1), DONE)
        await rest(pilot)
        await pilot.press("f2")
        await until(pilot, lambda: isinstance(rig.app.screen, TurnsScreen))
        await pilot.press("e", "c")
        await rest(pilot)
        assert sorted(path.suffix for path in (tmp_path / "exports").iterdir()) == [".csv", ".json"]


async def test_text_that_looks_like_markup_is_only_text():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        rig.handle.steer("[red]not red[/] [/oops]")
        await rest(pilot)
        assert "[red]not red[/] [/oops]" in rig.app.query_one(QueueLine).render().plain
