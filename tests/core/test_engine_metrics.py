"""Counters in a Prometheus text, whatever else is in it."""

from agent.core.engine_metrics import ACCEPTED, DRAFTED, DRAFTS, read_metrics

VLLM = """\
# HELP vllm:spec_decode_num_drafts_total Number of drafts.
vllm:spec_decode_num_drafts_total{model="a"} 10
vllm:spec_decode_num_drafts_total{model="b"} 5.0
vllm:spec_decode_num_draft_tokens_total{model="a"} 1.2e2
vllm:spec_decode_num_accepted_tokens_total{model="a"} 60 1700000000000
vllm:spec_decode_num_accepted_tokens_per_pos_total{model="a",position="0"} 40
vllm:spec_decode_num_accepted_tokens_per_pos_total{model="a",position="2"} 20
vllm:broken NaN
vllm:broken_too +Inf
sglang:spec_accept_rate{rank="0"} 0.5
sglang:spec_accept_rate{rank="1"} 0.25
spec_decode_num_draft_tokens_total 3
"""


def test_counters_are_summed_over_models():
    found = read_metrics(VLLM, "vllm")
    assert (found.sums[DRAFTS], found.sums[DRAFTED], found.sums[ACCEPTED]) == (15, 120, 60)


def test_positions_without_a_sample_count_nothing():
    assert read_metrics(VLLM).by_position == (40, 0, 20)


def test_only_names_of_one_engine_count_when_it_is_named():
    assert "spec_accept_rate" not in read_metrics(VLLM, "vllm").sums
    assert read_metrics(VLLM).sums[DRAFTED] == 123


def test_a_gauge_of_several_workers_is_the_highest():
    assert read_metrics(VLLM, "sglang").highest == {"spec_accept_rate": 0.5}


def test_what_is_no_number_is_passed_over():
    assert not read_metrics(VLLM, "vllm").knows("broken")
    assert read_metrics("<html>\nmetrics off 7x\n").sums == {}


def test_a_position_beyond_any_draft_takes_no_memory():
    text = 'vllm:spec_decode_num_accepted_tokens_per_pos_total{position="99999999"} 1\n'
    assert read_metrics(text).by_position == ()
