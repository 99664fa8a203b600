from typing import Any

from textual.pilot import Pilot
from textual.widget import Widget

from agent.core.events import (
    ApprovalRequest,
    ApprovalSettled,
    AssistantReplied,
    Event,
    Notice,
    ReasoningDelta,
    StepStarted,
    TextDelta,
    ToolCallDelta,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnFinished,
    UserMessageAdded,
    to_record,
)
from agent.core.stats import StepStats
from agent.core.tool import FileDiff
from agent.session.replay import events_in
from agent.ui.conversation.document import MOST_RENDERED_BLOCKS
from agent.ui.conversation.view import ConversationView
from tests.ui.conversation.rig import ViewApp, feed, screen_rows, shown


def call(number: int = 1, command: str = "make test") -> ToolStarted:
    return ToolStarted(call_id=f"c{number}", tool="shell", arguments={"command": command})


def ended(number: int = 1, text: str = "done", outcome: Any = "ok", **more: Any) -> ToolFinished:
    return ToolFinished(call_id=f"c{number}", tool="shell", outcome=outcome, text=text, seconds=0.2, **more)


def words(text: str) -> list[TextDelta]:
    return [TextDelta(text=text[at : at + 3]) for at in range(0, len(text), 3)]


def on_screen(view: ConversationView) -> str:
    return "\n".join(screen_rows(view))


def copied(pilot: Pilot[None]) -> list[str]:
    assert isinstance(pilot.app, ViewApp)
    return pilot.app.copied


def history(blocks: int) -> list[Event]:
    """A recorded session with about that many blocks."""
    events: list[Event] = []
    for number in range(blocks // 4):
        events += [
            UserMessageAdded(text=f"question {number}"),
            AssistantReplied(text=f"answer {number}\n\n```python\nx = {number}\n```", reasoning="hm"),
            call(number),
            ended(number),
        ]
    return events


async def test_text_is_shown_while_it_comes():
    async with shown(words("Hello **wor")) as (view, pilot):
        assert "Hello **wor" in on_screen(view)
        await feed(view, pilot, words("ld** and"))
        assert "Hello world and" in on_screen(view)


async def test_events_reach_the_screen_without_being_asked_for():
    async with shown() as (view, pilot):
        view.show(TextDelta(text="by itself"))
        while "by itself" not in on_screen(view):
            await pilot.pause(0.01)


async def test_what_came_before_the_view_was_mounted_is_not_lost():
    view = ConversationView()
    view.show(TextDelta(text="early"))
    assert view.copy_last() == ""
    assert "early" in view.plain_text()


async def test_the_end_stays_in_view_unless_the_person_scrolled_up():
    async with shown([Notice(text=f"line {number}") for number in range(60)]) as (view, pilot):
        assert "line 59" in on_screen(view)
        await pilot.press("pageup")
        before = screen_rows(view)
        await feed(view, pilot, [Notice(text="new at the end")])
        assert screen_rows(view) == before
        await pilot.press("end")
        assert "new at the end" in on_screen(view)
        await feed(view, pilot, [Notice(text="and another")])
        assert "and another" in on_screen(view)


async def test_scrolling_back_to_the_end_follows_it_again():
    async with shown([Notice(text=f"line {number}") for number in range(60)]) as (view, pilot):
        await pilot.press("up", "up", "down", "down")
        assert view.follows


async def test_what_a_person_sent_is_shown_once():
    async with shown() as (view, pilot):
        view.add_user("fix the bug")
        await feed(view, pilot, [UserMessageAdded(text="Files: a.py\n\nfix the bug")])
        assert on_screen(view).count("fix the bug") == 1


async def test_a_running_call_shows_the_end_of_its_output():
    output = [ToolOutput(call_id="c1", text=f"row {number}\n") for number in range(30)]
    async with shown([call(), *output]) as (view, pilot):
        rows = on_screen(view)
        assert "row 29" in rows
        assert "row 22" in rows
        assert "row 21" not in rows
        await feed(view, pilot, [ended()])
        assert "row 29" not in on_screen(view)
        assert "✓ shell  make test  0.2 s · 30 lines" in on_screen(view)


async def test_a_call_opens_and_closes_with_a_click_on_its_head():
    async with shown([call(), ToolOutput(call_id="c1", text="a\nb\n"), ended()]) as (view, pilot):
        assert "│ b" not in on_screen(view)
        await pilot.click(ConversationView, offset=(6, 1))
        assert "│ b" in on_screen(view)
        await pilot.click(ConversationView, offset=(6, 1))
        assert "│ b" not in on_screen(view)


async def test_a_call_that_needs_approval_says_that_it_waits():
    ask = ApprovalRequest(
        request_id="r", call_id="c1", tool="shell", arguments={"command": "rm x"}, reason="asks"
    )
    async with shown([call(command="rm x"), ask]) as (view, pilot):
        assert "◆ shell  rm x  waits for you" in on_screen(view)
        await feed(view, pilot, [ApprovalSettled(request_id="r", outcome="once")])
        assert "waits for you" not in on_screen(view)
        await feed(view, pilot, [ended()])
        assert on_screen(view).count("shell") == 1


async def test_a_denied_call_says_so_and_why():
    denied = ended(text="Denied: keep the build.", outcome="denied")
    async with shown([call(command="rm -r build"), denied]) as (view, _):
        assert "⊘ shell  rm -r build  denied" in on_screen(view)
        assert "Denied: keep the build." in on_screen(view)


async def test_a_change_is_shown_as_a_diff_with_line_numbers():
    diff = FileDiff("a.py", "x = 1\ny = 2\n", "x = 1\ny = 3\n")
    async with shown([call(), ended(diffs=(diff,))]) as (view, _):
        rows = screen_rows(view)
        assert "    1   x = 1" in rows
        assert "    2 - y = 2" in rows
        assert "    2 + y = 3" in rows
        assert "+1 −1" in on_screen(view)


async def test_old_and_new_stand_beside_each_other_where_there_is_room():
    diff = FileDiff("a.py", "x = 1\ny = 2\n", "x = 1\ny = 3\n")
    async with shown([call(), ended(diffs=(diff,))], size=(200, 60)) as (view, _):
        assert any("2 - y = 2" in row and "2 + y = 3" in row for row in screen_rows(view))


async def test_a_long_diff_is_folded_and_opens_with_a_key():
    after = "\n".join(f"line {number}" for number in range(100))
    async with shown([call(), ended(diffs=(FileDiff("new.py", None, after),))]) as (view, pilot):
        assert "… 80 more rows" in on_screen(view)
        await pilot.press("left_square_bracket", "enter")
        assert "+ line 99" in view.plain_text()


async def test_thoughts_are_one_row_until_they_are_opened():
    thoughts = [ReasoningDelta(text="First I look. "), ReasoningDelta(text="Then I act.")]
    async with shown([*thoughts, *words("Done.")]) as (view, pilot):
        assert "∴ thought · about 6 tokens" in on_screen(view)
        assert "First I look" not in on_screen(view)
        assert view.toggle_reasoning()
        await pilot.pause()
        assert "First I look. Then I act." in on_screen(view)
        assert not view.toggle_reasoning()
        await pilot.pause()
        assert "First I look" not in on_screen(view)


async def test_a_call_that_is_being_written_is_announced_and_then_replaced():
    async with shown([ToolCallDelta(text='{"command": "ls"')]) as (view, pilot):
        assert "writing a call · about 4 tokens" in on_screen(view)
        await feed(view, pilot, [call()])
        assert "writing a call" not in on_screen(view)


async def test_what_is_said_before_a_call_is_shown_once_though_the_call_is_announced_behind_it():
    said = AssistantReplied(text="I look at it.", reasoning="")
    events = [StepStarted(step=1), *words("I look at it."), ToolCallDelta(text="{}"), said, call()]
    async with shown(events) as (view, pilot):
        assert on_screen(view).count("I look at it.") == 1
        assert "writing a call" not in on_screen(view)
        lost = [StepStarted(step=2), *words("Now I"), ToolCallDelta(text="{}")]
        await feed(view, pilot, [*lost, AssistantReplied(text="Now I run it.", reasoning=""), call(2)])
        assert on_screen(view).count("Now I") == 1
        assert "Now I run it." in on_screen(view)


async def test_lost_deltas_are_made_up_for_by_the_whole_reply():
    reply = AssistantReplied(text="The whole sentence.", reasoning="")
    async with shown([*words("The whole"), reply]) as (view, pilot):
        assert "The whole sentence." in on_screen(view)
        await feed(
            view, pilot, [StepStarted(step=2), *words("Oth"), AssistantReplied(text="New", reasoning="")]
        )
        assert "Oth" not in on_screen(view)
        assert "New" in on_screen(view)


async def test_an_answer_that_was_streamed_is_not_repeated_at_the_end_of_the_turn():
    end = TurnFinished(
        reason="done", answer="All good.", detail="", steps=1, stats=StepStats(decoded_tokens=3)
    )
    async with shown([*words("All good."), AssistantReplied(text="All good.", reasoning=""), end]) as (
        view,
        _,
    ):
        assert on_screen(view).count("All good.") == 1
        assert "─ 1 step · 3 tokens" in on_screen(view)


async def test_a_call_written_as_text_is_not_shown_twice():
    reply = AssistantReplied(text='{"tool": "finish", "answer": "Fixed."}', reasoning="")
    end = TurnFinished(reason="done", answer="Fixed.", detail="", steps=1, stats=StepStats())
    async with shown([ToolCallDelta(text="x"), reply, end]) as (view, _):
        assert '"tool"' not in on_screen(view)
        assert "Fixed." in on_screen(view)
        assert view.copy_last() == "Fixed."


async def test_drafting_is_mentioned_only_where_there_was_some():
    plain = StepStats(decoded_tokens=100, decode_seconds=2)
    drafted = StepStats(decoded_tokens=100, decode_seconds=2, drafted=50, accepted=30)
    ends = [TurnFinished(reason="done", answer="", detail="", steps=1, stats=one) for one in (plain, drafted)]
    async with shown(ends) as (view, _):
        rows = [row for row in screen_rows(view) if "50.0 tok/s" in row]
        assert ["of drafts accepted" in row for row in rows] == [False, True]


async def test_escape_sequences_of_model_and_tools_never_reach_the_terminal():
    evil = "\x1b]52;c;aGk=\x07 \x1b[2J \x9b1m \u202e"
    said = [
        *words(evil + "\n```\n" + evil + "\n```\n"),
        call(command=evil),
        ToolOutput(call_id="c1", text=evil),
    ]
    async with shown([*said, ended(text=evil, outcome="error"), Notice(text=evil)]) as (view, _):
        shown_text = view.plain_text()
        assert not set(shown_text) & set("\x1b\x07\x9b\u202e")
        assert "␛]52;c;aGk=␇" in shown_text


async def test_a_session_of_5000_blocks_mounts_no_more_widgets_than_an_empty_one():
    async with shown() as (view, pilot):
        empty = len(view.walk_children(Widget))
        view.load_history(history(5000))
        await pilot.pause()
        assert view.block_count >= 5000
        assert len(view.walk_children(Widget)) == empty
        assert view.rendered_block_count < 40


async def test_no_more_than_a_window_of_blocks_stays_laid_out():
    async with shown() as (view, pilot):
        view.load_history(history(3000))
        for _ in range(150):
            view.action_page(-1)
        assert 0 < view.rendered_block_count <= MOST_RENDERED_BLOCKS
        await pilot.press("home")
        assert "question 0" in on_screen(view)


async def test_scrolling_up_into_blocks_that_were_never_laid_out_moves_row_by_row():
    async with shown() as (view, pilot):
        view.load_history(history(400))
        await pilot.pause()
        before = screen_rows(view)
        for _ in range(60):
            await pilot.press("up")
            rows = screen_rows(view)
            assert rows[1:] == before[:-1]
            before = rows


async def test_a_resize_keeps_what_is_read_in_view():
    async with shown() as (view, pilot):
        view.load_history(history(800))
        await pilot.press(*["pageup"] * 10)
        top = next(row for row in screen_rows(view) if "question" in row)
        await pilot.resize_terminal(50, 24)
        await pilot.pause()
        assert top in screen_rows(view)


async def test_a_resumed_session_shows_what_was_shown_live():
    diff = FileDiff("a.py", "x = 1\n", "x = 2\n")
    reply = "Text with `code`.\n\n- a\n- b"
    events: list[Event] = [
        UserMessageAdded(text="do it"),
        *words(reply),
        AssistantReplied(text=reply, reasoning=""),
        call(),
        ended(diffs=(diff,)),
        Notice(text="careful", level="warning"),
        TurnFinished(reason="step_limit", answer="", detail="after 3 steps", steps=3, stats=StepStats()),
    ]
    records = [to_record(event) for event in events if not isinstance(event, TextDelta)]
    async with shown(events) as (live, _):
        expected = live.plain_text()
    async with shown() as (resumed, _):
        resumed.load_history(list(events_in(records)))
        assert resumed.plain_text() == expected


async def test_a_remark_breaks_between_words_also_in_the_rows_below_it():
    hint = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    async with shown([Notice(text=f"careful\n{hint}", level="warning")]) as (view, _):
        rows = [row.partition("│")[2].strip() for row in on_screen(view).split("\n") if "│" in row]
    assert len(rows) > 1
    assert " ".join(rows) == hint


async def test_a_call_without_an_end_in_the_record_counts_as_cancelled():
    async with shown() as (view, pilot):
        view.load_history([call()])
        await pilot.pause()
        assert "– shell  make test  cancelled" in on_screen(view)


async def test_a_code_block_is_copied_as_it_was_written():
    async with shown(words("Look:\n\n```python\nx = 1\n\ty\n```\n\nDone.\n\n")) as (_, pilot):
        await pilot.press("y")
        assert copied(pilot) == ["x = 1\n\ty\n"]


async def test_the_last_reply_is_copied_when_no_block_is_chosen():
    async with shown([*words("Some **text**"), StepStarted(step=2)]) as (_, pilot):
        await pilot.press("c")
        assert copied(pilot) == ["Some **text**"]


async def test_selected_rows_are_given_as_text():
    async with shown([Notice(text="one"), Notice(text="two")]) as (_, pilot):
        await pilot.mouse_down(ConversationView, offset=(4, 1))
        await pilot.hover(ConversationView, offset=(7, 2))
        await pilot.mouse_up(ConversationView, offset=(7, 2))
        assert pilot.app.screen.get_selected_text() == "one\n  · two"


async def test_selected_text_can_still_be_read():
    async with shown([Notice(text="one"), Notice(text="two")]) as (view, pilot):
        await pilot.mouse_down(ConversationView, offset=(4, 1))
        await pilot.hover(ConversationView, offset=(7, 2))
        await pilot.mouse_up(ConversationView, offset=(7, 2))
        looks = {segment.text: segment.style for segment in view.render_line(1)}
        selected, plain = looks["one"], looks["  · "]
        assert selected is not None
        assert plain is not None
        assert selected.color == plain.color
        assert selected.bgcolor != plain.bgcolor


async def test_clearing_leaves_nothing():
    async with shown([*words("gone"), call()]) as (view, pilot):
        view.clear()
        await pilot.pause()
        assert on_screen(view).strip() == ""
        await feed(view, pilot, words("again"))
        assert "again" in on_screen(view)
