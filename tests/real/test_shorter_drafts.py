"""What is done about drafts that do not pay, on a server that really drafts: shorter ones, and then none."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from agent.app.servers.serving import Serving
from agent.app.servers.speed_guard import SpeedGuard, guard_for
from agent.bench.baseline import Baseline
from agent.core.events import StepFinished
from agent.core.stats import StepStats
from agent.resources import runtime_folder
from agent.server.loopback import request_json
from agent.server.process import stop_server
from agent.server.record import Endpoint, Record, list_records
from tests.real.rig import choosing

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

PROFILE = """\
extends = "embedded-dflash"
engine = "{engine}"
context = 1024
cache_ram_mib = 0
"""
FAST_ONCE = Baseline(
    profile="short", suite="agent", decode_rate=1e6, prompt_rate=None, speculation="dflash",
    accept_rate=0.9, machine="", samples=3, measured_at="2026-01-01T00:00:00+00:00",
)  # fmt: skip
SLOW = StepFinished(
    step=1, stop_reason="stop", stats=StepStats(decoded_tokens=60, decode_seconds=6, drafted=90, accepted=30)
)
NEAR_TIE = 0.2
"""Nats between two tokens that the rounding of a batch of another size may put in another order."""
PROMPT = {"prompt": "def add(a, b):\n", "n_predict": 48, "ignore_eos": True, "temperature": 0.0}


class Unasked:
    """A model that must not be told of shorter drafts: the servers here pass over the field."""

    def change_sampling(self, **values: object) -> None:
        raise AssertionError(values)


def drafting(
    engine: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> AbstractAsyncContextManager[Serving]:
    """The shipped DFlash pair as somebody has it who wants drafts changed that do not pay."""
    return choosing("short", PROFILE, engine, folder, monkeypatch, **{"server.fallback": "plain"})


def only_record() -> Record:
    [record] = list_records(runtime_folder())
    return record


def completion(record: Record, **more: Any) -> dict[str, Any]:
    body = PROMPT | more
    status, answer = request_json(record.port, "POST", "/completion", record.api_key, body, timeout=120)
    assert status == 200, answer
    assert isinstance(answer, dict)
    return answer


def drafted_by(record: Record) -> tuple[int, int]:
    """Tokens drafted for one reply, and how often the target was asked for it at least."""
    timings: dict[str, Any] = completion(record)["timings"]
    accepted = timings.get("draft_n_accepted", 0)
    return timings.get("draft_n", 0), timings["predicted_n"] - accepted


def slow_guard(serving: Serving, endpoint: Endpoint) -> tuple[SpeedGuard, str]:
    """A guard that has seen three slow replies, and what it said."""
    guard = guard_for(serving, endpoint, lambda _: FAST_ONCE)
    notices = [notice.text for _ in range(4) if (notice := guard.observe(SLOW))]
    assert len(notices) == 1
    assert guard.wants_change
    return guard, notices[0]


@pytest.mark.parametrize("engine", ["embedded", "llama-server"])
async def test_server_that_drafts_is_replaced_by_one_with_shorter_drafts_and_then_by_one_without(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with drafting(engine, tmp_path, monkeypatch) as whole:
        endpoint = await whole.endpoint(lambda _: None)
        drafted, passes = drafted_by(only_record())
        assert drafted > 1.5 * passes  # three at once

        guard, said = slow_guard(whole, endpoint)
        assert said.endswith("from the next turn on it drafts at most 1 token at once")
        shorter = await guard.change(endpoint, Unasked(), lambda _: None)
        assert shorter is not None
        assert shorter.endpoint is not None
        record = only_record()
        drafted, passes = drafted_by(record)
        assert (record.draft_limit, record.speculates, record.degraded) == (1, True, False)
        assert 0 < drafted <= passes  # one at once

        guard, said = slow_guard(shorter.serving, shorter.endpoint)
        assert said.endswith("from the next turn on it goes without the draft")
        plain = await guard.change(shorter.endpoint, Unasked(), lambda _: None)
        assert plain is not None
        record = only_record()
        assert (record.draft_limit, record.speculates, record.degraded) == (0, None, True)
        assert drafted_by(record)[0] == 0


async def test_greedy_reply_is_the_same_with_drafts_up_to_a_near_tie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with drafting("embedded", tmp_path, monkeypatch) as whole:
        await whole.endpoint(lambda _: None)
        record = only_record()
        drafted = completion(record, return_tokens=True)
        await stop_server(record, runtime_folder())
        plain = whole.without_draft()
        assert plain is not None
        await plain.endpoint(lambda _: None)
        alone = completion(only_record(), n_probs=2)
    assert drafted["timings"]["draft_n"] > 0
    likely = alone["completion_probabilities"]
    assert len(likely) == len(drafted["tokens"]) == PROMPT["n_predict"]
    parted = [at for at, one in enumerate(likely) if one["id"] != drafted["tokens"][at]]
    if parted:  # after the first difference they are two texts
        first, second = likely[parted[0]]["top_logprobs"][:2]
        assert drafted["tokens"][parted[0]] == second["id"]
        assert first["logprob"] - second["logprob"] < NEAR_TIE
