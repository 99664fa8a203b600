"""The main screen: sending, steering, interrupting, sessions, what is shown."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from textual.geometry import Size

from agent.core.errors import ServerError, UsageError
from agent.core.events import (
    AssistantReplied,
    Notice,
    QueueChanged,
    StepStarted,
    TextDelta,
    ToolStarted,
    TurnFinished,
    UserMessageAdded,
)
from agent.core.stats import StepStats
from agent.ui.options import Opening
from agent.ui.screens.turns import TurnsScreen
from agent.ui.widgets.queue_line import QueueLine
from tests.fakes.fake_handle import FACTS, FakeHandle
from tests.ui.rig import SIZES, RealRig, Rig, rest, settle, type_text, until

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


async def test_a_new_session_empties_the_screen_and_closes_the_old_one():
    handles = [FakeHandle(), FakeHandle()]
    rig = Rig(handles=handles)
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        handles[0].emit(Notice(text="old"))
        await rest(pilot)
        rig.app.submit("/new", "now")
        await rest(pilot)
        assert (handles[0].is_closed, rig.lines, len(rig.openings)) == (True, [], 2)


async def test_a_resumed_session_shows_what_was_said():
    past = [UserMessageAdded(text="before"), TextDelta(text="said"), DONE]
    handles = [FakeHandle(services={"resumable": "20260101-abc"}), FakeHandle(services={"history": past})]
    rig = Rig(handles=handles)
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        rig.app.submit("/resume abc", "now")
        await rest(pilot)
        assert handles[0].commands == [("resumable", {"name": "abc", "present": FACTS.session_id})]
        assert rig.openings[1].resume == "20260101-abc"
        assert rig.conversation.events == past


async def test_a_call_that_a_killed_session_left_open_does_not_run_on_when_it_is_resumed():
    past = [ToolStarted(call_id="c1", tool="shell", arguments={"command": "make test"})]
    services = {"resumable": "20260101-abc", "history": past}
    rig = RealRig(handles=[FakeHandle(services=services)])
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        rig.app.submit("/resume abc", "now")
        await rest(pilot)
        assert "make test  cancelled" in rig.view.plain_text()


async def test_the_open_session_stays_where_the_one_to_resume_is_not_there():
    error = UsageError("no session 'abd'", "did you mean 20260101-abc?")
    rig = Rig(handles=[FakeHandle(services={"resumable": error})])
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        rig.app.submit("/resume abd", "now")
        await rest(pilot)
        assert rig.lines == ["no session 'abd'\ndid you mean 20260101-abc?"]
        assert (rig.handle.is_closed, len(rig.openings)) == (False, 1)


async def test_a_session_that_cannot_be_opened_is_opened_again_with_the_next_text():
    calls: list[str] = []
    handle = FakeHandle()

    async def open_session(_opening: object) -> FakeHandle:
        calls.append("open")
        if len(calls) == 1:
            raise ServerError("the server did not start", "see its log")
        return handle

    rig = Rig(handles=[handle], options={"open_session": open_session})
    async with rig.app.run_test() as pilot:
        await pilot.pause()
        await rest(pilot)
        assert rig.lines == ["the server did not start\nsee its log"]
        rig.app.submit("again", "now")
        await settle(pilot, rig)
        assert handle.prompts == ["again"]


async def test_where_an_earlier_session_cannot_go_on_a_new_one_takes_what_is_typed():
    asked: list[str] = []
    handle = FakeHandle()

    async def open_session(opening: Opening) -> FakeHandle:
        asked.append(opening.resume)
        if opening.resume:
            raise UsageError("no session 'abc'", "agent session list shows the sessions")
        return handle

    rig = Rig(handles=[handle], options={"open_session": open_session, "opening": Opening(resume="abc")})
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        rig.app.submit("hello", "now")
        await rest(pilot)
        assert rig.lines[:2] == [
            "no session 'abc'\nagent session list shows the sessions",
            "a new session is open instead",
        ]
        assert (asked, handle.prompts) == (["abc", ""], ["hello"])


async def test_what_stops_any_session_is_told_once():
    async def open_session(_opening: Opening) -> FakeHandle:
        raise UsageError("unknown profile 'x'", "see `agent profile list`")

    rig = Rig(options={"open_session": open_session, "opening": Opening(resume="abc")})
    async with rig.app.run_test() as pilot:
        await pilot.pause()
        await rest(pilot)
        assert rig.lines == ["unknown profile 'x'\nsee `agent profile list`"]


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
