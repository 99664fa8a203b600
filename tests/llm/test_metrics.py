"""Acceptance comes from an engine's own metrics, and only where nobody else was served meanwhile."""

from collections.abc import Iterator

import pytest

from agent.core.stats import StepStats
from agent.llm.metrics import MetricsKind, MetricsWatch, read_snapshot, with_drafting
from tests.fakes.engines import Counters, Habits, sglang_metrics, vllm_metrics

REPLY = StepStats(decoded_tokens=40, source="measured")
BEFORE = Counters(requests=3, generated=100, rounds=10, drafted=70, accepted=30)
AFTER = Counters(requests=4, generated=140, rounds=20, drafted=140, accepted=58)


def vllm(counters: Counters) -> str:
    return vllm_metrics(counters, Habits(kind="vllm", drafts_of=7))


def seen(before: str, after: str, kind: MetricsKind = "vllm", stats: StepStats = REPLY) -> StepStats:
    looks = [read_snapshot(before, kind), read_snapshot(after, kind)]
    assert looks[0] is not None
    assert looks[1] is not None
    return with_drafting(stats, looks[0], looks[1], kind)


def test_difference_of_two_looks_is_what_one_reply_drafted():
    stats = seen(vllm(BEFORE), vllm(AFTER))
    assert (stats.drafted, stats.accepted, stats.draft_rounds) == (70, 28, 10)
    assert stats.acceptance_rate == pytest.approx(0.4)
    assert stats.accepted_length == pytest.approx(3.8)
    assert stats.accepted_by_position == (10, 10, 8, 0, 0, 0, 0)
    assert stats.draft_source == "engine metrics"


def test_speed_stays_what_it_was():
    stats = seen(vllm(BEFORE), vllm(AFTER))
    assert (stats.decoded_tokens, stats.source) == (40, "measured")


@pytest.mark.parametrize(
    "after",
    [
        Counters(requests=5, generated=140, rounds=20, drafted=140, accepted=58),  # another one ended
        Counters(requests=4, generated=180, rounds=20, drafted=140, accepted=58),  # another one wrote
        Counters(requests=4, generated=140, rounds=10, drafted=70, accepted=30),  # nothing was drafted
        Counters(requests=1, generated=10, rounds=1, drafted=7, accepted=3),  # the server began anew
    ],
)
def test_nothing_is_said_where_the_figures_may_be_anothers(after: Counters):
    assert seen(vllm(BEFORE), vllm(after)) == REPLY


@pytest.mark.parametrize("gauge", ["num_requests_running", "num_requests_waiting"])
@pytest.mark.parametrize("look", [0, 1])
def test_nothing_is_said_while_another_request_is_at_work(gauge: str, look: int):
    looks = [vllm(BEFORE), vllm(AFTER)]
    looks[look] = looks[look].replace(
        f'{gauge}{{engine="0",model_name="served/model"}} 0.0', f"{gauge}{{}} 1.0"
    )
    assert seen(looks[0], looks[1]) == REPLY


def test_counters_of_all_engines_of_a_server_are_added():
    twice = "\n".join([vllm(AFTER), vllm(AFTER).replace('engine="0"', 'engine="1"')])
    snapshot = read_snapshot(twice, "vllm")
    assert snapshot is not None
    assert snapshot.sums["spec_decode_num_draft_tokens_total"] == 280
    assert snapshot.by_position[:2] == (40, 40)


@pytest.mark.parametrize("text", ["", "<html>no metrics here</html>", "vllm:num_requests_running 0"])
def test_metrics_without_drafting_say_nothing(text: str):
    assert read_snapshot(text, "vllm") is None
    assert read_snapshot(text, "sglang") is None


def test_values_that_are_no_numbers_are_left_out():
    text = vllm(AFTER).replace("} 140.0", "} NaN")
    assert read_snapshot(text, "vllm") is None


def test_sglang_gives_its_own_rate_and_length_and_no_counts():
    stats = seen(sglang_metrics(BEFORE), sglang_metrics(AFTER), "sglang")
    assert (stats.drafted, stats.accepted) == (0, 0)
    assert stats.acceptance_rate == pytest.approx(58 / 140)
    assert stats.accepted_length == pytest.approx(3.9)
    assert stats.draft_source == "engine metrics"


def test_sglang_gauge_that_did_not_move_belongs_to_an_earlier_reply():
    after = sglang_metrics(BEFORE).replace("num_requests_total", "num_requests")
    assert seen(sglang_metrics(BEFORE), after, "sglang") == REPLY


def test_figures_of_the_reply_itself_win():
    own = StepStats(decoded_tokens=40, drafted=8, accepted=2, draft_source="server")
    assert seen(vllm(BEFORE), vllm(AFTER), stats=own) == own


async def test_server_without_metrics_is_asked_once():
    asked = 0

    async def read() -> None:
        nonlocal asked
        asked += 1

    watch = MetricsWatch("vllm", read)
    for _ in range(3):
        await watch.begin()
        assert await watch.completed(REPLY) == REPLY
    assert asked == 1


async def test_each_reply_has_a_look_before_and_one_after():
    texts: Iterator[str] = iter([vllm(BEFORE), vllm(AFTER)])

    async def read() -> str | None:
        return next(texts, None)

    watch = MetricsWatch("vllm", read)
    await watch.begin()
    assert (await watch.completed(REPLY)).drafted == 70
