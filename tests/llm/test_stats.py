"""Speed that is measured here: from the stream and the server's counts, and only where that shows it."""

import pytest

from agent.llm.stats import Arrival, from_timings, from_usage

USAGE = {"prompt_tokens": 30, "completion_tokens": 41, "prompt_tokens_details": {"cached_tokens": 20}}


def streamed(**more: float) -> Arrival:
    values = {"pieces": 41, "first_seconds": 0.5, "last_seconds": 2.5, "first_share": 0.02, **more}
    return Arrival(int(values.pop("pieces")), **values)


def test_decoding_is_timed_from_the_first_piece_to_the_last():
    stats = from_usage(USAGE, streamed())
    assert (stats.decode_rate, stats.decode_seconds) == (20.0, 2.0)
    assert stats.decoded_tokens == 41
    assert stats.source == "measured"


def test_reading_is_timed_up_to_the_first_piece_without_cached_tokens():
    stats = from_usage(USAGE, streamed())
    assert (stats.prompt_tokens, stats.cached_tokens, stats.prefill_rate) == (10, 20, 20.0)


def test_tokens_of_the_first_piece_do_not_count_as_decoded_after_it():
    stats = from_usage(USAGE, streamed(pieces=5, first_share=0.2))
    assert stats.timed_tokens == 33
    assert stats.decode_rate == 16.5


def test_reply_that_comes_at_once_has_no_speed():
    stats = from_usage(USAGE, streamed(pieces=1, last_seconds=0.5, first_share=1.0))
    assert (stats.decode_rate, stats.prefill_rate) == (None, None)
    assert stats.decoded_tokens == 41


def test_pieces_stand_for_tokens_where_nobody_counts_and_then_there_is_no_speed():
    stats = from_usage(None, streamed())
    assert (stats.decoded_tokens, stats.counted) == (41, False)
    assert (stats.decode_rate, stats.prefill_rate) == (None, None)


@pytest.mark.parametrize("details", [None, "many", {"cached_tokens": None}, {}])
def test_nothing_is_cached_where_the_server_does_not_say_so(details: object):
    assert from_usage({**USAGE, "prompt_tokens_details": details}, streamed()).cached_tokens == 0


def test_drafting_in_timings_is_the_servers_own():
    assert from_timings({"draft_n": 8, "draft_n_accepted": 6}).draft_source == "server"
    assert from_timings({"predicted_n": 8}).draft_source == ""


def test_what_a_build_that_does_not_say_so_kept_of_a_prompt_is_told_by_its_usage():
    timings = {"prompt_n": 12, "predicted_n": 5}
    stats = from_timings(timings, {"prompt_tokens": 4_000, "completion_tokens": 5})
    assert (stats.prompt_tokens, stats.cached_tokens, stats.context_tokens) == (12, 3_988, 4_005)
    assert from_timings({**timings, "cache_n": 0}, {"prompt_tokens": 4_000}).cached_tokens == 0
    assert from_timings(timings).cached_tokens == 0
