"""The way from the input to the conversation and back, what is copied there, and the line of hints."""

from textual.pilot import Pilot
from textual.widgets import OptionList

from agent.core.events import AssistantReplied, Notice, TurnFinished
from agent.core.stats import StepStats
from tests.ui.rig import RealRig, Rig, done_or_asking, rest, settle


async def with_a_reply(pilot: Pilot[str], rig: RealRig, lines: int = 1) -> None:
    await settle(pilot, rig)
    text = "\n\n".join(f"line {number}" for number in range(lines))
    rig.handle.emit(AssistantReplied(text=text, reasoning=""))
    await rest(pilot)
    rig.view.flush()
    await rest(pilot)


async def test_tab_goes_to_the_conversation_and_escape_comes_back():
    rig = RealRig()
    async with rig.app.run_test(size=(120, 40)) as pilot:
        await with_a_reply(pilot, rig)
        await pilot.press("tab")
        await rest(pilot)
        assert rig.view.has_focus
        assert "copies it" in rig.hints
        await pilot.press("escape")
        await rest(pilot)
        assert rig.app.prompt.has_focus
        assert rig.handle.cancelled == 0


async def test_tab_stays_in_the_input_while_there_is_no_conversation():
    rig = RealRig()
    async with rig.app.run_test(size=(120, 40)) as pilot:
        await settle(pilot, rig)
        await pilot.press("tab")
        assert rig.app.prompt.has_focus
        assert "conversation" not in rig.hints


async def test_a_letter_without_a_meaning_there_goes_on_typing():
    rig = RealRig()
    async with rig.app.run_test(size=(120, 40)) as pilot:
        await with_a_reply(pilot, rig)
        await pilot.press("tab", "x", "y")
        assert rig.app.prompt.text == "xy"


async def test_a_copied_block_goes_to_the_terminal_and_that_is_said():
    rig = RealRig()
    async with rig.app.run_test(size=(120, 40)) as pilot:
        await with_a_reply(pilot, rig)
        await pilot.press("tab", "c")
        await rest(pilot)
        assert "\x1b]52;c;bGluZSAw\x07" in "".join(rig.sent)
        assert "Copied 6 characters" in rig.app.status.render().plain


async def test_the_persons_own_keys_hold_in_the_conversation_and_in_the_hints():
    rig = RealRig(options={"keys": {"conversation.copy": "x"}})
    async with rig.app.run_test(size=(120, 40)) as pilot:
        await with_a_reply(pilot, rig)
        await pilot.press("tab", "x")
        await rest(pilot)
        assert rig.sent
        assert "x copies it" in rig.hints


async def test_scrolling_up_is_marked_and_the_end_takes_the_mark_away():
    rig = RealRig()
    async with rig.app.run_test(size=(80, 24)) as pilot:
        await with_a_reply(pilot, rig, lines=60)
        assert "more below" not in rig.hints
        await pilot.press("pageup")
        await rest(pilot)
        assert rig.hints.endswith("↓ more below")
        await pilot.press("tab", "end")
        await rest(pilot)
        assert "more below" not in rig.hints


async def test_the_hints_say_how_to_interrupt_while_the_model_works():
    rig = RealRig()
    async with rig.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, rig)
        rig.app.submit("go", "now")
        while "interrupts" not in rig.hints:  # the line follows with the next look at the figures
            await pilot.pause(0.05)
        assert rig.hints.split()[:6] == ["Esc", "interrupts", "Enter", "steers", "Alt+Enter", "queues"]


async def test_what_never_reached_the_model_comes_back_after_an_interrupt():
    rig = RealRig()
    async with rig.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, rig)
        rig.app.submit("go", "now")
        await rest(pilot)
        await pilot.press("escape")
        rig.handle.follow_up("go")
        rig.handle.emit(TurnFinished(reason="cancelled", answer="", detail="", steps=0, stats=StepStats()))
        await rest(pilot)
        assert rig.app.prompt.text == "go"


async def test_a_notice_alone_is_a_conversation():
    rig = RealRig()
    async with rig.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, rig)
        rig.handle.emit(Notice(text="hello"))
        await rest(pilot)
        assert "Tab conversation" in rig.hints


async def test_a_list_is_moved_in_without_the_arrows():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await pilot.press("ctrl+p")
        await done_or_asking(pilot)
        options = rig.app.screen.query_one(OptionList)
        await pilot.press("ctrl+j", "ctrl+j", "ctrl+k")
        assert options.highlighted == 1
        await pilot.press("escape")
