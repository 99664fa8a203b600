"""Figures of drafting add up over steps, and what one step does not say is not made up for the others."""

import pytest

from agent.core.stats import StepStats, total


def counted(drafted: int, accepted: int, rounds: int, positions: tuple[int, ...]) -> StepStats:
    return StepStats(
        decoded_tokens=10,
        drafted=drafted,
        accepted=accepted,
        draft_rounds=rounds,
        accepted_by_position=positions,
        draft_source="engine metrics",
    )


def test_counts_of_drafting_are_added():
    both = total([counted(14, 5, 2, (2, 2, 1)), counted(7, 1, 1, (1,)), StepStats()])
    assert (both.drafted, both.accepted, both.draft_rounds) == (21, 6, 3)
    assert both.accepted_by_position == (3, 2, 1)
    assert both.accepted_length == 3.0
    assert both.draft_source == "engine metrics"


def test_step_that_drafted_without_rounds_leaves_no_mean_length():
    both = total([counted(14, 5, 2, (2, 2, 1)), StepStats(drafted=7, accepted=3, draft_source="server")])
    assert (both.accepted_length, both.accepted_by_position) == (None, ())
    assert both.acceptance_rate == pytest.approx(8 / 21)


def test_rates_of_an_engine_weigh_as_much_as_the_tokens_behind_them():
    one = StepStats(decoded_tokens=30, engine_acceptance=0.8, engine_accepted_length=4.0)
    other = StepStats(decoded_tokens=10, engine_acceptance=0.4, engine_accepted_length=2.0)
    both = total([one, other, StepStats(decoded_tokens=500)])
    assert both.acceptance_rate == pytest.approx(0.7)
    assert both.accepted_length == pytest.approx(3.5)


def test_only_tokens_that_were_timed_count_for_the_speed():
    timed = StepStats(decoded_tokens=11, timed_tokens=10, decode_seconds=1.0, source="measured")
    at_once = StepStats(decoded_tokens=40, timed_tokens=0, source="measured")
    assert timed.decode_rate == 10.0
    assert total([timed, at_once]).decode_rate == 10.0


def test_each_token_that_was_not_drafted_took_a_pass_of_the_model():
    assert StepStats(decoded_tokens=20, drafted=40, accepted=12).tokens_per_pass == 2.5


def test_without_drafts_nothing_is_said_of_passes():
    assert StepStats(decoded_tokens=20).tokens_per_pass is None
    assert StepStats(decoded_tokens=3, drafted=4, accepted=3).tokens_per_pass is None


def test_total_says_if_the_server_left_something_uncounted():
    assert not total([StepStats(), StepStats(counted=False)]).counted
    assert total([]).counted
