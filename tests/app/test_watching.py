"""Which sessions are watched for their speed, and what people are told to do about it."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest

from agent.app.serving import Serving
from agent.app.watching import guard_for, plain_profile
from agent.config.model import Server, Settings
from agent.core.events import Notice, StepFinished
from agent.core.stats import StepStats
from agent.server.profile import ModelFile, Profile, Speculation
from agent.server.record import Endpoint

OURS = Endpoint(
    base_url="http://127.0.0.1:9", api_key="", profile="mine", context_tokens=0, fingerprint="f", pid=2
)
THEIRS = Endpoint(base_url="http://127.0.0.1:9", api_key="", profile="mine", context_tokens=0)
SLOW = StepFinished(
    step=1, stop_reason="stop", stats=StepStats(decoded_tokens=64, decode_seconds=6.4, drafted=9, accepted=5)
)


@dataclass(frozen=True)
class Measured:
    decode_rate: float = 100.0
    accept_rate: float | None = 0.6


@dataclass(frozen=True)
class Loaded:
    settings: Settings


def serving(kind: Any = "ngram-simple", fallback: Any = "notice", file: str = "x.gguf") -> Serving:
    profile = Profile(
        name="mine", target=ModelFile(file=file), speculation=Speculation.model_validate({"kind": kind})
    )
    settings = Settings(server=Server(fallback=fallback))
    return Serving(profile, cast("Any", Loaded(settings)), "f")


def told(one: Serving, endpoint: Endpoint, baseline: Measured | None = Measured()) -> list[Notice]:
    guard = guard_for(one, endpoint, lambda _: baseline)
    return [notice for _ in range(5) if (notice := guard.observe(SLOW))]


@pytest.fixture(autouse=True)
def no_profiles_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_CONFIG_HOME", str(tmp_path))


def test_slow_server_that_drafts_is_told_once():
    [notice] = told(serving(), OURS)
    assert notice.level == "warning"
    assert notice.text.startswith("decoding is slower than it was measured: 10.0 tok/s")
    assert notice.text.endswith('to go without the draft: speculation.kind = "none" in a profile')


def test_server_without_drafting_is_not_watched():
    assert told(serving("none"), OURS) == []


def test_server_of_somebody_else_is_watched_if_it_drafted_when_it_was_measured():
    assert len(told(serving("none"), THEIRS)) == 1
    assert told(serving("none"), THEIRS, Measured(accept_rate=None)) == []


def test_draft_without_a_model_cannot_be_left_out_by_a_fallback():
    guard = guard_for(serving(fallback="plain"), OURS, lambda _: Measured())
    for _ in range(3):
        guard.observe(SLOW)
    assert not guard.wants_plain


def test_profile_with_the_same_model_and_no_draft_is_the_remedy():
    assert plain_profile(serving()) == ""
    target = ModelFile(file="gemma-4-31B-it-Q4_K_S.gguf")
    profile = Profile(name="mine", engine="llama-server", target=target)
    assert plain_profile(replace(serving(), profile=profile)) == "gemma4-31b"
