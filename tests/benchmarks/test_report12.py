"""The arithmetic behind the tables, on sessions small enough to be worked out by hand."""

from typing import Any

import pytest

from agent.core.stats import StepStats
from benchmarks.real_conversation import Step, reuse_in
from benchmarks.report12 import prompt_figures


def body(*texts: str) -> dict[str, Any]:
    roles = ("system", "user", "assistant", "user", "assistant", "user")
    return {"messages": [{"role": role, "content": text} for role, text in zip(roles, texts, strict=False)]}


def step(cached: int, evaluated: int, decoded: int, *, kept: bool = True) -> Step:
    stats = StepStats(cached_tokens=cached, prompt_tokens=evaluated, decoded_tokens=decoded)
    return Step(stats, kept)


def test_conversation_that_only_grows_has_a_ratio_of_one():
    found = prompt_figures([body("Be brief.", "Hi"), body("Be brief.", "Hi", "Yes?", "Bye")])
    assert (found["prefill_ratio"], found["least_prefix_kept"]) == (1.0, 1.0)


def test_changed_system_text_costs_the_whole_prompt_again():
    found = prompt_figures([body("Be brief.", "Hi" * 99), body("It is 12:01.", "Hi" * 99, "Yes?", "Bye")])
    assert found["least_prefix_kept"] < 0.2
    assert found["prefill_ratio"] > 1.5


def test_task_is_not_counted_as_part_of_what_comes_before_it():
    short, long = (prompt_figures([body("Be brief.", "word " * length)]) for length in (1, 500))
    assert short["before_the_task_tokens"] == long["before_the_task_tokens"]
    assert long["first_request_tokens"] > short["first_request_tokens"] + 400


def test_what_an_intact_cache_gives_back_is_not_evaluated_again():
    reuse = reuse_in([step(0, 100, 20), step(119, 30, 20), step(168, 30, 5)])
    assert (reuse.again, reuse.evaluated, reuse.prompt) == (0, 160, 100 + 149 + 198)


def test_lost_reply_counts_as_evaluated_again():
    reuse = reuse_in([step(0, 100, 20), step(100, 49, 20)])
    assert reuse.again == 19
    assert reuse.share_again == pytest.approx(19 / 249)
    assert reuse.share_of_evaluated == pytest.approx(19 / 149)


def test_reply_that_was_left_out_of_the_conversation_is_no_loss():
    assert reuse_in([step(0, 100, 20, kept=False), step(100, 10, 5)]).again == 0
