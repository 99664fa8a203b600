"""Slash commands against a played session: what they ask of it, and what a person reads."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from textual.widgets import OptionList, Static

from agent.app.services.accounts import ContextPart, ContextReport
from agent.app.services.profile_rows import ProfileRow
from agent.app.services.rewinding import RewindPoint, RewindResult
from agent.app.services.switching import ProfileSwitch, ServerPanel
from agent.core.cancel import InterruptedRunError
from agent.core.errors import UsageError
from agent.core.events import Notice, PrefixBroken, Rewound, UserMessageAdded
from agent.ui.commands.catalogue import ALL, find, parse
from agent.ui.commands.command import Command
from agent.ui.commands.reports import context_text, server_text
from agent.ui.commands.session import session_choices
from agent.ui.options import Opening
from agent.ui.request_text import coloured_diff
from agent.ui.screens.page import PageScreen
from agent.ui.screens.picker import PickerScreen
from tests.fakes.fake_handle import FACTS, FakeHandle
from tests.ui.rig import Rig, done_or_asking, rest, settle, type_text, until

PROFILES = [
    ProfileRow(name="small", description="Tiny", bytes=98_000_000, presence="here"),
    ProfileRow(
        name="qwen3.6-27b-dflash-precision",
        description="A large one for a GPU of 24 GB",
        bytes=18_000_000_000,
        presence="not here",
    ),
    ProfileRow(name="remote", description="Elsewhere", bytes=0, presence="elsewhere"),
]
POINTS = [
    RewindPoint(turn=1, first_line="write it", started=0.0, changed=("a.py",)),
    RewindPoint(turn=2, first_line="explain it", started=0.0, changed=()),
]

NO_SERVER = "No MCP server is configured. `agent mcp add NAME -- COMMAND` adds one; /new then uses it."
BACK = Rewound(to_turn=1, what="both", restored=("a.py",))


def rig_with(**services: Any) -> Rig:
    return Rig(handles=[FakeHandle(services=services)])


async def run_line(pilot: Any, rig: Rig, line: str) -> None:
    rig.app.submit(line, "now")
    await done_or_asking(pilot)


async def test_rewind_asks_for_the_message_and_what_goes_back_and_returns_the_message():
    rig = rig_with(
        rewind_points=POINTS,
        rewind=RewindResult(to_turn=1, what="both", prompt="write it", restored=("a.py",)),
        history=[UserMessageAdded(text="an older one"), BACK],
    )
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await run_line(pilot, rig, "/rewind")
        first = rig.app.screen
        await pilot.press("down", "enter")
        await until(pilot, lambda: rig.app.screen not in (first, rig.app.main))
        await pilot.press("enter")
        await rest(pilot)
        assert ("rewind", {"to_turn": 1, "what": "both"}) in rig.handle.commands
        assert rig.app.prompt.text == "write it"
        assert isinstance(rig.conversation.events[0], UserMessageAdded)
        assert rig.conversation.events == [UserMessageAdded(text="an older one"), BACK]


async def test_what_going_back_tells_is_on_the_redrawn_screen_once():
    anew = PrefixBroken(cause="the conversation went back to before turn 1")
    header = Notice(text="a header")
    rig = rig_with(history=[header, BACK, anew])
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        rig.handle.emit(header, BACK, anew)
        desk = rig.app.desk
        assert desk is not None
        await desk.redraw()
        rig.handle.emit(Notice(text="news"))
        await rest(pilot)
        assert rig.conversation.events == [header, BACK, anew, Notice(text="news")]


async def test_a_message_that_changed_no_file_offers_only_the_conversation():
    rig = rig_with(rewind_points=POINTS)
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await run_line(pilot, rig, "/rewind")
        first = rig.app.screen
        await pilot.press("enter")
        await until(pilot, lambda: rig.app.screen not in (first, rig.app.main))
        screen = rig.app.screen
        assert isinstance(screen, PickerScreen)
        assert [choice.label for choice in screen.choices] == ["Only the conversation", "Stay here"]
        await pilot.press("escape")


async def test_a_session_that_cannot_go_back_says_so_in_a_sentence():
    rig = rig_with()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await run_line(pilot, rig, "/rewind")
        await rest(pilot)
        assert rig.lines == ["This session cannot go back yet; /undo takes back what it changed in files."]


async def test_compact_hands_the_instruction_over_and_says_what_hinders_it():
    rig = rig_with(compact=UsageError("not yet", "begin a new one"))
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await run_line(pilot, rig, "/compact keep the plan")
        await rest(pilot)
        assert rig.handle.commands == [("compact", {"instruction": "keep the plan"})]
        assert rig.lines == ["not yet\nbegin a new one"]


async def test_who_interrupts_compact_is_not_told_of_an_error():
    rig = rig_with(compact=InterruptedRunError())
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await run_line(pilot, rig, "/compact")
        await rest(pilot)
        assert rig.handle.commands == [("compact", {"instruction": ""})]
        assert rig.lines == []


async def test_a_question_beside_the_work_is_asked_as_it_was_typed():
    rig = rig_with(btw=None)
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await run_line(pilot, rig, "/btw")
        await run_line(pilot, rig, "/btw what is  a slot?")
        await rest(pilot)
        assert rig.lines == ["/btw question: question is missing"]
        assert rig.handle.commands == [("btw", {"question": "what is  a slot?"})]


@pytest.mark.parametrize(
    ("typed", "guess"),
    [("hlep", "/help"), ("modle", "/mode"), ("undp", "/undo"), ("mpc", "/mcp"), ("comp", "/compact")],
)
def test_a_slip_of_the_fingers_is_understood(typed: str, guess: str):
    with pytest.raises(UsageError) as caught:
        find(typed)
    assert guess in caught.value.hint


@pytest.mark.parametrize("typed", ["nosuch", "xyz", "setings", "tudolist"])
def test_a_word_that_is_like_no_command_leads_to_the_list(typed: str):
    with pytest.raises(UsageError) as caught:
        find(typed)
    assert caught.value.hint == "/help lists them"


def test_what_a_command_would_ignore_is_refused():
    with pytest.raises(UsageError, match="/undo takes nothing behind it, but there is '3'"):
        parse("/undo 3")
    assert parse("/undo ")[1] == ""


async def test_bench_hands_its_options_on_and_leaves_the_telling_to_its_card():
    rig = rig_with(bench=None)
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await run_line(pilot, rig, "/bench --limit 1")
        await rest(pilot)
        assert rig.handle.commands == [("bench", {"options": "--limit 1"})]
        assert rig.lines == []


async def test_another_model_is_only_gone_over_to_after_its_cost_was_shown():
    switch = ProfileSwitch(
        profile="big", model="big.gguf", tokens=3000, seconds=12.0, measured_with="big", is_running=False
    )
    rig = rig_with(profile=switch)
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await run_line(pilot, rig, "/model big")
        screen = rig.app.screen
        assert isinstance(screen, PickerScreen)
        cost = "3.0k tokens to read, about 12 s at the speed measured here, its server has to start"
        assert screen.choices[0].note == cost
        assert rig.handle.commands == [("profile", {"name": "big"})]
        await pilot.press("enter")
        await rest(pilot)
        assert rig.handle.commands[-1] == ("profile", {"name": "big", "apply": True})


@pytest.mark.parametrize(("columns", "end"), [(80, " A large one for a GPU…"), (160, " for a GPU of 24 GB")])
async def test_profiles_to_choose_from_say_what_they_are_and_whether_their_files_are_there(
    columns: int, end: str
):
    rig = rig_with(profile=PROFILES)
    async with rig.app.run_test(size=(columns, 24)) as pilot:
        await settle(pilot, rig)
        await run_line(pilot, rig, "/model")
        await pilot.pause()
        shown = [str(option.prompt) for option in rig.app.screen.query_one(OptionList).options]
        assert shown[0] == "● small                         here       98.0 MB  now: Tiny"
        assert shown[1].startswith("  qwen3.6-27b-dflash-precision  not here   18.0 GB ")
        assert shown[1].endswith(end)
        await pilot.press("escape")


async def test_a_rule_of_this_session_can_be_removed():
    rig = rig_with(session_rules=["shell(make *)"], forget_rule="shell(make *)")
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await run_line(pilot, rig, "/permissions")
        await pilot.press("down", "enter")
        await rest(pilot)
        assert rig.handle.commands[-1] == ("forget_rule", {"rule": "shell(make *)"})
        assert rig.lines == ["shell(make *) is asked about again."]


async def test_without_rules_of_the_session_permissions_are_a_page():
    rig = rig_with(session_rules=[], permissions="allow shell(ls)")
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await run_line(pilot, rig, "/permissions")
        await rest(pilot)
        assert isinstance(rig.app.screen, PageScreen)
        shown = str(rig.app.screen.query_one("#page-text", Static).render())
        assert shown == "mode: ask\n\nallow shell(ls)"


async def test_mcp_and_skills_are_plain_sentences_where_there_are_none():
    rig = rig_with(skills=[])
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        for line in ("/mcp", "/skills"):
            await run_line(pilot, rig, line)
            await rest(pilot)
        assert rig.lines == [NO_SERVER, "There is no skill here."]


async def test_the_keys_page_has_the_keys_of_the_conversation_too():
    rig = rig_with()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await type_text(pilot, "/keys")
        await pilot.press("enter")
        await rest(pilot)
        shown = str(rig.app.screen.query_one("#page-text", Static).render())
        assert "conversation.copy-code" in shown


async def test_the_help_begins_with_the_keys_and_says_how_it_closes():
    rig = rig_with()
    async with rig.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, rig)
        await pilot.press("f1")
        await rest(pilot)
        rows = [strip.text.strip() for strip in rig.app.screen._compositor.render_strips()]
        filled = [row for row in rows if row]
        assert filled[0] == "Help · Esc closes"
        assert filled[1].startswith("Enter         sends")
        assert filled[-1] == "Esc closes"


async def test_nothing_of_the_conversation_is_left_beside_a_page():
    rig = rig_with()
    async with rig.app.run_test(size=(140, 30)) as pilot:
        await settle(pilot, rig)
        rig.handle.emit(Notice(text="x" * 2000))
        await rest(pilot)
        await run_line(pilot, rig, "/keys")
        await rest(pilot)
        rows = [strip.text for strip in rig.app.screen._compositor.render_strips()]
        assert not any("xx" in row for row in rows)


async def test_on_eighty_columns_a_key_and_its_name_stand_on_one_row():
    rig = rig_with()
    async with rig.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, rig)
        await run_line(pilot, rig, "/keys")
        await rest(pilot)
        page = rig.app.screen.query_one("#page-text", Static)
        assert page.size.height == len(str(page.render()).split("\n"))


def test_the_context_is_a_bar_and_a_table_with_the_greatest_first():
    parts = (
        ContextPart(kind="system", tokens=500, messages=1, seconds=2.5),
        ContextPart(kind="results", tokens=1500, messages=3, seconds=7.5),
    )
    text = context_text(ContextReport(parts=parts, used=2048, window=4096, is_exact=True)).plain
    lines = text.split("\n")
    assert lines[0] == "━" * 20 + "─" * 20 + "  2,048 of 4,096 tokens, 50 %"
    assert lines[3].split()[:5] == ["results", "1,500", "3", "7.5", "s"]
    assert lines[-1] == "Reading all of it anew takes this machine about 10 s."


def test_an_empty_conversation_has_a_context_too():
    assert context_text(ContextReport(parts=(), used=0, window=0, is_exact=False)).plain


def test_the_panel_of_a_server_names_what_was_noticed_and_shows_its_log():
    panel = ServerPanel(
        state="ready",
        profile="small",
        engine="llama-server",
        model="small.gguf",
        url="http://127.0.0.1:8080",
        pid=7,
        context_tokens=4096,
        slots=1,
        tool_protocol="native",
        prefill_rate=None,
        log_file=None,
        log=("loaded", "evil \x1b[2J"),
        memory_bytes=1_500_000_000,
        speculation="none",
        findings=({"level": "warning", "code": "x", "message": "runs on the CPU", "hint": "fit it"},),
    )
    text = server_text(panel).plain
    assert "memory       1.50 GB" in text
    assert "speculation  off" in text
    assert "! runs on the CPU\n  fit it" in text
    assert text.endswith("loaded\nevil ␛[2J")


def test_what_a_service_of_another_kind_answers_is_shown_too():
    assert "state" in server_text({"state": "ready"}).plain
    assert context_text(SimpleNamespace()).plain


def test_a_diff_keeps_its_text_whatever_is_in_it():
    text = "--- a\n+++ b\n@@ -1 +1 @@\n-[bold]x\n+y\u2028z"
    assert coloured_diff(text).plain == "--- a\n+++ b\n@@ -1 +1 @@\n-[bold]x\n+y‹2028›z"


async def test_a_custom_command_is_sent_as_the_text_that_it_stands_for():
    rig = rig_with(expand="Review the last commit.")
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await run_line(pilot, rig, "/review deep")
        await rest(pilot)
        assert rig.handle.commands == [("expand", {"name": "review", "arguments": "deep"})]
        assert rig.handle.prompts == ["Review the last commit."]


@pytest.mark.parametrize("command", ALL, ids=lambda command: command.name)
def test_every_command_has_help_beyond_its_summary(command: Command):
    assert command.help.endswith((".", ")"))


async def test_a_fork_goes_on_in_a_copy_of_the_open_session():
    rig = rig_with()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await run_line(pilot, rig, "/fork")
        await rest(pilot)
        assert rig.openings[-1] == Opening(resume=FACTS.session_id, fork=True)


async def test_undo_and_redo_say_what_they_did_and_how_to_go_on():
    files = {"restored": ("a.py",), "deleted": ("b.py",)}
    back = SimpleNamespace(turn=3, task="now the docs\n" + "and more " * 20, goes_further=True, **files)
    forward = SimpleNamespace(turn=0, task="", goes_further=False, **files)
    rig = rig_with(undo=back, redo=forward)
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await run_line(pilot, rig, "/undo")
        await run_line(pilot, rig, "/redo")
        await rest(pilot)
        undone, redone = rig.lines
    assert undone.startswith("Took back turn 3 (now the docs and more and more")
    assert undone.endswith("…): put back a.py; removed b.py. /redo brings it back, /undo goes further back.")
    assert redone == "Brought back the changes: changed a.py; removed b.py. /undo takes it back."


@pytest.mark.parametrize("action", ["start", "stop"])
async def test_the_server_is_started_and_stopped_by_hand(action: str):
    rig = rig_with(server=None)
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await run_line(pilot, rig, f"/server {action}")
        await run_line(pilot, rig, "/server burn")
        await rest(pilot)
        assert rig.handle.commands == [("server", {"action": action})]
        assert rig.lines[-1] == "/server knows no 'burn'\nstate, log, start or stop"


async def test_a_theme_of_the_settings_that_is_not_there_is_told():
    rig = Rig(options={"theme": "nosuch"})
    async with rig.app.run_test() as pilot:
        await until(pilot, lambda: "there is no theme 'nosuch' (ui.theme)" in rig.app.status.render().plain)
        assert rig.app.theme == "agent-dark"


async def test_a_theme_is_used_at_once_and_kept():
    kept: list[tuple[str, Any]] = []
    rig = Rig(options={"save_setting": lambda key, value: kept.append((key, value))})
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await run_line(pilot, rig, "/theme agent-light")
        await run_line(pilot, rig, "/theme nosuch")
        await rest(pilot)
        assert (rig.app.theme, kept) == ("agent-light", [("ui.theme", "agent-light")])
        assert rig.lines == ["there is no theme 'nosuch'\n/theme shows all of them"]


def test_the_list_of_sessions_tells_times_as_the_clock_on_the_wall_does():
    stamp = datetime(2026, 11, 30, 9, 29, 5, 409000, UTC)
    rows = ({"id": "one", "started": stamp.isoformat()}, {"id": "two", "started": "of old"}, {"id": "three"})
    shown = [choice.note for choice in session_choices(rows)]
    assert shown == [stamp.astimezone().strftime("%Y-%m-%d %H:%M"), "of old", ""]
