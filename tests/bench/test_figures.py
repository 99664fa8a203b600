"""From samples to rows, and whether outputs are the same."""

import pytest

from agent.bench.figures import OVERALL, overall, rows_by_category, rows_by_prompt
from agent.bench.same import comparisons, parting
from agent.bench.table import table
from tests.bench.rig import result_of, sample


def test_row_has_the_median_and_both_ends():
    result = result_of(
        *(sample("a", run, decode_seconds=seconds) for run, seconds in ((1, 5), (2, 10), (3, 2)))
    )
    (row,) = rows_by_prompt(result)
    assert row.decode_rate is not None
    assert (row.decode_rate.median, row.decode_rate.low, row.decode_rate.high) == (10, 5, 25)


def test_speedup_compares_the_same_run_of_the_same_prompt():
    result = result_of(
        *(sample("a", 1, decode_seconds=5), sample("a", 2, decode_seconds=10)),
        *(sample("b", 2, decode_seconds=2), sample("b", 1, decode_seconds=2.5)),
    )
    row = overall(result, "b")
    assert row is not None
    assert row.speedup is not None
    assert (row.speedup.low, row.speedup.high, row.speedup.median) == (2, 5, 3.5)


def test_baseline_has_no_speedup_of_its_own():
    row = overall(result_of(sample("a"), sample("b")), "a")
    assert row is not None
    assert row.speedup is None


def test_both_rates_of_acceptance_are_told_and_the_mean_length_over_all_checks():
    result = result_of(
        sample("a", 1, drafted=100, accepted=30, checks=10, mean_accepted_length=4.0),
        sample("a", 2, drafted=100, accepted=10, checks=30, mean_accepted_length=1.33),
    )
    row = overall(result, "a")
    assert row is not None
    assert (row.accept_rate, row.draft_share, row.mean_length) == (0.2, 0.4, 2.0)


def test_mean_length_is_not_told_when_one_reply_does_not_tell_it():
    result = result_of(
        sample("a", 1, drafted=100, accepted=30, checks=10, mean_accepted_length=4.0),
        sample("a", 2, drafted=100, accepted=10),
    )
    row = overall(result, "a")
    assert row is not None
    assert row.mean_length is None


def test_acceptance_by_place_is_a_share_of_all_checks():
    result = result_of(
        sample("a", 1, drafted=40, accepted=9, checks=10, accepted_per_position=(6, 3, 0)),
        sample("a", 2, drafted=40, accepted=12, checks=20, accepted_per_position=(9, 2, 1, 0)),
        sample("b", 1),
    )
    row = overall(result, "a")
    assert row is not None
    assert row.by_position == pytest.approx((15 / 30, 5 / 30, 1 / 30))
    assert "a, drafts whose 1st, 2nd ... token was accepted: 50 %, 17 %, 3 %." in table(result)
    assert "b, drafts" not in table(result)


def test_what_the_server_does_not_say_is_not_zero():
    row = overall(result_of(sample("a", drafted=None, accepted=None, measured_here=True)), "a")
    assert row is not None
    assert (row.drafted, row.accept_rate, row.draft_share) == (None, None, None)


def test_rows_have_the_names_of_the_client_of_llama_cpp():
    categories = [row.as_table() for row in rows_by_category(result_of(sample("a")))]
    assert [row["category"] for row in categories] == ["coding", OVERALL]
    known = {"avg_prompt_t_s": 100, "avg_pred_t_s": 10, "avg_latency": 6, "requests": 1, "failed": 0}
    assert known.items() <= categories[0].items()


@pytest.mark.parametrize(
    ("one", "other", "at"),
    [("same", "same", None), ("abc", "abd", 2), ("abc", "ab", 2), ("", "x", 0)],
)
def test_two_texts_part_at_the_first_character_that_differs(one: str, other: str, at: int | None):
    assert parting(one, other) == at


def test_greedy_outputs_are_called_identical_or_shown_where_they_part():
    result = result_of(
        *(sample("a", 1, text="def f(): pass"), sample("a", 1, prompt_id="second", text="same")),
        *(sample("b", 1, text="def g(): pass"), sample("b", 1, prompt_id="second", text="same")),
        is_greedy=True,
    )
    first, second = comparisons(result)
    assert (first.is_identical, first.parts_at) == (False, 4)
    assert second.is_identical
    shown = table(result)
    assert "first: b and a part at character 4: 'g(): pass' and 'f(): pass'." in shown
    assert "second: b and a wrote the same" in shown


def test_sampled_outputs_are_not_expected_to_be_the_same():
    shown = table(result_of(sample("a", text="x"), sample("b", text="y")))
    assert "part at" not in shown


def test_table_marks_what_was_measured_here_and_names_each_failure():
    result = result_of(
        sample("a", 1, measured_here=True, drafted=None, accepted=None), sample("a", 2, error="it broke")
    )
    shown = table(result)
    assert "1 (1 failed)" in shown
    assert "* a: the server reports no timings" in shown
    assert "a, first, run 2 failed: it broke" in shown
    assert "n/a" in shown


def test_table_of_nothing_says_so():
    assert table(result_of()).startswith("nothing was measured")
