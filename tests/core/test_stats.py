"""Rates divide by model time only, and what was not there has no rate."""

import json

from agent.core.events import StepFinished, ToolFinished, to_record
from agent.core.stats import StepStats, total
from agent.core.tool import FileDiff


def test_the_rates_of_a_total_are_not_means_of_rates():
    slow = StepStats(decoded_tokens=10, decode_seconds=1.0, prompt_tokens=100, prompt_seconds=1.0)
    fast = StepStats(decoded_tokens=90, decode_seconds=1.0, prompt_tokens=300, prompt_seconds=1.0)
    both = total([slow, fast])
    assert (both.decode_rate, both.prefill_rate) == (50.0, 200.0)


def test_nothing_has_no_rate():
    nothing = total([])
    assert nothing.decode_rate is None
    assert nothing.prefill_rate is None
    assert nothing.acceptance_rate is None
    assert nothing.cached_share is None
    assert nothing.context_tokens == 0


def test_acceptance_is_accepted_by_drafted():
    assert StepStats(drafted=8, accepted=6).acceptance_rate == 0.75


def test_the_cached_share_is_that_of_the_prompt():
    assert StepStats(prompt_tokens=10, cached_tokens=90, decoded_tokens=50).cached_share == 0.9


def test_a_total_says_if_some_of_it_was_measured_here():
    assert total([StepStats(), StepStats(source="measured")]).source == "measured"
    assert total([StepStats()]).source == "server"


def test_an_event_becomes_plain_data_with_its_type_first():
    event = ToolFinished(
        call_id="c1",
        tool="edit",
        outcome="ok",
        text="edited",
        seconds=0.5,
        diffs=(FileDiff("a.py", None, "x"),),
    )
    record = to_record(event)
    assert next(iter(record)) == "type"
    assert json.loads(json.dumps(record))["diffs"] == [{"path": "a.py", "before": None, "after": "x"}]


def test_the_figures_of_a_step_are_part_of_its_record():
    record = to_record(StepFinished(step=1, stop_reason="stop", stats=StepStats(decoded_tokens=3)))
    assert record["stats"]["decoded_tokens"] == 3
