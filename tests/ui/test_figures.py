"""The figures of the status bar and of the table of turns."""

import json
from dataclasses import replace

import pytest
from rich.cells import cell_len

from agent.core.events import (
    ApprovalRequest,
    ApprovalSettled,
    CompactionFinished,
    Event,
    Prefill,
    StepFinished,
    StepStarted,
    TextDelta,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from agent.core.handle import SessionFacts
from agent.core.stats import StepStats
from agent.ui.conversation.text import visible
from agent.ui.meter import Figures, TurnMeter, accepted_length
from agent.ui.screens.turns import as_csv, as_json, sparkline
from agent.ui.status import GAP, Shown, fit, segments
from agent.ui.text import count, duration, one_line, rate, size
from tests.fakes.fake_handle import FACTS
from tests.ui.rig import Clock

STATS = StepStats(
    prompt_tokens=100,
    cached_tokens=900,
    decoded_tokens=60,
    prompt_seconds=0.5,
    decode_seconds=2.0,
    drafted=50,
    accepted=40,
)
FULL = Figures(
    decode_rate=130.4,
    prefill_rate=2100,
    acceptance=0.72,
    accepted_length=3.4,
    cached=12_000,
    new=340,
    elapsed=95,
)


def finished(stats: StepStats = STATS) -> TurnFinished:
    return TurnFinished(reason="done", answer="", detail="", steps=1, stats=stats)


def text_of(shown: list[Shown]) -> str:
    return (" " * GAP).join(item.text for item in shown)


def test_rates_divide_by_model_time_and_not_by_that_of_tools():
    clock = Clock()
    meter = TurnMeter(clock)
    meter.note(TurnStarted(attempt=1))
    meter.note(StepStarted(step=1))
    meter.note(StepFinished(step=1, stop_reason="tool", stats=STATS))
    clock.now += 60
    meter.note(ToolFinished(call_id="1", tool="shell", outcome="ok", text="", seconds=60))
    assert meter.figures().decode_rate == 30


def test_the_rate_is_an_estimate_while_text_streams():
    clock = Clock()
    meter = TurnMeter(clock)
    meter.note(StepStarted(step=1))
    for _ in range(21):
        meter.note(TextDelta(text="x"))
        clock.now += 0.1
    figures = meter.figures()
    assert figures.is_estimate
    assert figures.decode_rate == pytest.approx(9.5, abs=0.1)


def test_reading_the_prompt_shows_how_far_it_is():
    clock = Clock()
    meter = TurnMeter(clock)
    meter.note(StepStarted(step=1))
    meter.note(Prefill(total=1000, cached=200, processed=200))
    clock.now += 1
    meter.note(Prefill(total=1000, cached=200, processed=600))
    figures = meter.figures()
    assert (figures.prefill_done, figures.prefill_total, figures.prefill_rate) == (600, 1000, 400)


def test_the_first_piece_of_text_ends_the_reading():
    meter = TurnMeter(Clock())
    meter.note(StepStarted(step=1))
    meter.note(Prefill(total=1000, cached=200, processed=1000))
    meter.note(TextDelta(text="x"))
    assert meter.figures().prefill_total == 0


@pytest.mark.parametrize("event", [
    ToolOutput(call_id="user-1", text="It "),
    ToolFinished(call_id="user-1", tool="btw", outcome="ok", text="It is.", seconds=1.0),
    CompactionFinished(before=1000, after=300),
])  # fmt: skip
def test_the_reading_of_a_request_outside_of_turns_ends_too(event: Event):
    meter = TurnMeter(Clock())
    meter.note(ToolStarted(call_id="user-1", tool="btw", arguments={"question": "And?"}))
    meter.note(Prefill(total=1000, cached=200, processed=1000))
    assert meter.figures().prefill_total == 1000
    meter.note(event)
    assert meter.figures().prefill_total == 0


def test_without_drafts_there_is_no_acceptance():
    meter = TurnMeter(Clock())
    meter.note(StepStarted(step=1))
    meter.note(StepFinished(step=1, stop_reason="stop", stats=replace(STATS, drafted=0, accepted=0)))
    assert (meter.figures().acceptance, meter.figures().accepted_length) == (None, None)


def test_a_pass_of_the_target_gives_its_own_token_and_the_accepted_ones():
    assert accepted_length(STATS) == 3.0


def test_every_turn_is_kept_with_what_a_person_waited():
    clock = Clock()
    meter = TurnMeter(clock)
    for seconds in (3, 5):
        meter.note(TurnStarted(attempt=1))
        clock.now += seconds
        meter.note(finished())
    assert [(turn.number, turn.seconds) for turn in meter.turns] == [(1, 3), (2, 5)]


def test_elapsed_time_stands_still_after_the_turn():
    clock = Clock()
    meter = TurnMeter(clock)
    meter.note(TurnStarted(attempt=1))
    clock.now += 4
    meter.note(finished())
    clock.now += 100
    assert meter.figures().elapsed == 4


def test_turns_are_exported_with_plain_names():
    meter = TurnMeter(Clock())
    meter.note(finished())
    row = json.loads(as_json(meter.turns))[0]
    assert (row["decode_tok_s"], row["acceptance"], row["accepted_length"]) == (30.0, 0.8, 3.0)
    assert as_csv(meter.turns).splitlines()[0].startswith("turn,ended,steps,seconds,decode_tok_s")


def test_a_sparkline_goes_from_zero_to_the_greatest():
    assert sparkline([0.0, 5.0, None, 10.0]) == "▁▅·█"


@pytest.mark.parametrize("width", range(1, 200, 7))
def test_the_status_never_gets_wider_than_the_terminal(width: int):
    assert cell_len(text_of(fit(segments(FACTS, FULL), width))) <= width


def test_at_eighty_columns_the_figures_that_matter_are_there():
    text = text_of(fit(segments(FACTS, FULL), 78))
    assert all(part in text for part in ("ask", "130 tok/s", "accepted 72 % ×3.4", "context 12 %", "1:35"))


@pytest.mark.parametrize("width", range(20, 200, 3))
def test_a_sign_of_the_server_never_stands_without_its_word(width: int):
    for server in ("ready", "stopped"):
        shown = fit(segments(replace(FACTS, server=server), FULL), width)
        assert all(item.text in ("● ready", "○ stopped") for item in shown if item.name == "server")


def test_a_wide_terminal_shows_everything_in_words():
    text = text_of(fit(segments(FACTS, FULL), 200))
    for part in (
        "small · qwen-coder-1.5b",
        "prefill 2,100 tok/s",
        "accepted 72 % · 3.4 a pass",
        "12k cached + 340 new",
        "context 1.0k of 8.2k, 12 %",
        "main ±3",
    ):
        assert part in text


def test_the_mode_is_the_last_thing_to_go():
    assert [item.name for item in fit(segments(FACTS, FULL), 6)] == ["mode"]


def test_a_server_that_failed_is_said_before_its_figures():
    facts = replace(FACTS, server="failed")
    assert "✗ server" in text_of(fit(segments(facts, FULL), 40))


def test_wide_characters_in_a_branch_are_measured_in_cells():
    facts = replace(FACTS, branch="功能/很长的分支名称")
    assert cell_len(text_of(fit(segments(facts, FULL), 60))) <= 60


def test_no_session_yet_is_said():
    assert text_of(fit(segments(None, Figures()), 80)) == "starting"


def test_a_server_that_waits_for_another_says_that_word_once():
    detail = "waiting for the server of profile 'embedded', which is busy with another session"
    facts = replace(FACTS, server="waiting")
    shown = text_of(fit(segments(facts, Figures(is_running=True), detail), 160))
    assert detail[:60] in shown
    assert shown.count("waiting") == 1


def test_what_a_turn_waits_for_is_named_where_it_is_not_the_model():
    facts = replace(FACTS, is_running=True, waits_for="the only slot is busy with another session")
    shown = text_of(fit(segments(facts, Figures(is_running=True)), 120))
    assert "waiting: the only slot is busy with another session" in shown
    assert "waiting for the model" not in shown


@pytest.mark.parametrize("width", [30, 80, 160])
def test_a_question_says_that_it_waits_for_the_person_and_not_for_the_model(width: int):
    meter = TurnMeter(lambda: 0.0)
    meter.note(TurnStarted(attempt=1))
    facts = replace(FACTS, is_running=True)
    shown = {}
    for event in (
        StepStarted(step=1),
        ApprovalRequest(request_id="r", call_id="c", tool="shell", arguments={}, reason=""),
        ApprovalSettled(request_id="r", outcome="once"),
        ToolStarted(call_id="c", tool="shell", arguments={}),
        ToolFinished(call_id="c", tool="shell", outcome="ok", text="", seconds=1.0),
        ApprovalRequest(request_id="s", call_id="d", tool="shell", arguments={}, reason=""),
        TurnFinished(reason="cancelled", answer="", detail="", steps=1, stats=StepStats()),
    ):
        meter.note(event)
        shown[event.type] = text_of(fit(segments(facts, meter.figures()), width))
    asks = "your answer"
    assert [asks in shown[one] for one in ("step_started", "approval_request", "turn_finished")] == [
        False,
        True,
        False,
    ]
    assert "waiting for the model" not in shown["tool_started"] + shown["approval_request"]
    assert "waiting" in shown["tool_finished"]


def test_a_question_is_said_in_full_in_80_cells_whatever_figures_there_are():
    shown = text_of(fit(segments(FACTS, replace(FULL, is_running=True, asks=True)), 80))
    assert "waiting for your answer" in shown
    assert "130 tok/s" in shown


def test_a_session_that_could_not_be_opened_is_not_said_to_start():
    assert text_of(fit(segments(None, Figures(), has_failed=True), 80)) == "✗ no session"


def test_a_branch_cannot_steer_the_terminal():
    facts = SessionFacts(session_id="1", workspace="/", profile="p", mode="ask", branch="a\x1b[31mb")
    assert "\x1b" not in text_of(fit(segments(facts, Figures()), 80))


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0"), (999, "999"), (1234, "1.2k"), (32_768, "33k"), (1_200_000, "1.2M")]
)
def test_tokens_are_counted_shortly(number: int, text: str):
    assert count(number) == text


@pytest.mark.parametrize(("seconds", "text"), [(7.9, "7 s"), (125, "2:05"), (3725, "1:02:05")])
def test_durations_are_short(seconds: float, text: str):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(512, "512 B"), (98_362_432, "98.4 MB"), (1_090_000_000, "1.09 GB"), (19e9, "19.0 GB")],
)
def test_sizes_have_the_units_of_downloads(number: float, text: str):
    assert size(number) == text


def test_rates_have_three_digits():
    assert [rate(7.416), rate(42.06), rate(2100.4)] == ["7.42", "42.1", "2,100"]


def test_control_characters_are_shown():
    assert visible("a\x1b[2Jb\x07\x7f\u202ec\n\td") == "a␛[2Jb␇␡‹202E›c\n\td"


def test_emoji_and_their_joiners_are_text():
    assert visible("👩‍💻 é 漢") == "👩‍💻 é 漢"


def test_a_long_text_on_one_line_is_cut():
    assert one_line("a\n  b " * 100, 8) == "a b a b…"


def test_the_live_rate_counts_the_pieces_that_reached_the_screen_joined():
    clock = Clock()
    meter = TurnMeter(clock)
    meter.note(StepStarted(step=1))
    meter.note(TextDelta(text="many words at once"))
    clock.now += 2.0
    meter.note(TextDelta(text="and many more"))
    assert meter.figures(pieces=301).decode_rate == pytest.approx(150)
