"""Drafting that does not pay is noticed once, with figures; a short or a single slow reply is no reason."""

from dataclasses import dataclass

import pytest

from agent.core.stats import StepStats
from agent.core.watch import SpeedWatch, WatchLimits


@dataclass(frozen=True)
class Measured:
    decode_rate: float = 100.0
    accept_rate: float | None = 0.6


def reply(rate: float, tokens: int = 64, drafted: int = 20, accepted: int = 10) -> StepStats:
    return StepStats(
        decoded_tokens=tokens,
        decode_seconds=tokens / rate,
        drafted=drafted,
        accepted=accepted,
        draft_source="server" if drafted else "",
    )


def said(*replies: StepStats, baseline: Measured | None = Measured()) -> list[str]:
    watch = SpeedWatch(baseline)
    return [watch.observe(one) for one in replies]


def test_third_slow_reply_in_a_row_is_told_with_the_figures():
    assert said(reply(50), reply(50), reply(50)) == [
        "",
        "",
        "decoding is slower than it was measured: 50.0 tok/s over the last 3 replies, baseline 100.0 tok/s "
        "(50% of it), acceptance 50%, baseline 60%",
    ]


def test_it_is_told_once():
    assert [bool(line) for line in said(*[reply(50)] * 8)] == [False, False, True, *[False] * 5]


def test_fast_reply_in_between_begins_the_count_anew():
    assert not any(said(reply(50), reply(50), reply(90), reply(50), reply(50)))


def test_short_reply_neither_counts_nor_interrupts():
    assert not any(said(*[reply(50, tokens=31)] * 5))
    assert said(reply(50), reply(50), reply(99, tokens=31), reply(50))[-1]


@pytest.mark.parametrize("rate", [80.0, 100.0, 300.0])
def test_speed_from_four_fifths_on_is_fine(rate: float):
    assert not any(said(*[reply(rate)] * 5))


def test_step_without_a_speed_says_nothing():
    assert not any(said(*[StepStats(decoded_tokens=64)] * 5))


def test_without_a_baseline_speed_is_nobodys_business():
    assert not any(said(*[reply(1)] * 5, baseline=None))


def test_slow_server_that_drafts_nothing_is_told_so():
    line = said(*[reply(50, drafted=0, accepted=0)] * 3)[-1]
    assert line.endswith("nothing was drafted")


def test_unknown_acceptance_is_left_out():
    slow = StepStats(decoded_tokens=64, decode_seconds=1.28, source="measured")
    assert said(slow, slow, slow)[-1].endswith("(50% of it)")
    assert said(*[reply(50)] * 3, baseline=Measured(accept_rate=None))[-1].endswith("acceptance 50%")


def beside_plain(rates: list[float], tokens: int = 256) -> list[str]:
    watch = SpeedWatch(plain_rate=100.0)
    return [watch.observe(reply(rate, tokens)) for rate in rates]


def test_median_of_five_stretches_below_the_speed_without_a_draft_is_told():
    assert beside_plain([94, 50, 300, 94, 90]) == [
        *[""] * 4,
        "slower with drafts than without: 94.0 tok/s, measured without 100.0 tok/s (94% of it)",
    ]


def test_drafting_that_costs_less_than_a_twentieth_or_gains_is_fine():
    assert not any(beside_plain([95] * 9))
    assert not any(beside_plain([50, 50, 120, 120, 120, 50, 120]))


def test_short_replies_count_together():
    assert [bool(line) for line in beside_plain([90] * 20, tokens=64)] == [*[False] * 19, True]


def test_draft_that_is_hardly_ever_accepted_is_told_with_the_counts():
    line = said(*[reply(100, drafted=50, accepted=2)] * 4)[-1]
    assert line == (
        "the model accepts only 4% of the draft (8 of 200 drafted tokens): drafting costs more than it gains"
    )


def test_few_drafted_tokens_prove_nothing():
    assert not any(said(*[reply(100, drafted=199, accepted=0)]))


def test_tenth_of_the_draft_is_enough():
    assert not any(said(*[reply(100, drafted=100, accepted=10)] * 4))


def test_limits_are_those_that_are_given():
    watch = SpeedWatch(Measured(), WatchLimits(steps=1, share=0.5, reply_tokens=8))
    assert watch.observe(reply(60, tokens=8)) == ""
    assert watch.observe(reply(40, tokens=8))
