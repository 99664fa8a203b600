"""Another session on the main screen: a new one, an earlier one, and one that cannot be opened."""

from agent.core.errors import ServerError, UsageError
from agent.core.events import Notice, TextDelta, ToolStarted, TurnFinished, UserMessageAdded
from agent.core.stats import StepStats
from agent.ui.options import Opening
from tests.fakes.fake_handle import FACTS, FakeHandle
from tests.ui.rig import RealRig, Rig, rest, settle

DONE = TurnFinished(reason="done", answer="fine", detail="", steps=1, stats=StepStats())


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
