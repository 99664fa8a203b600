"""Which sessions are watched for their speed, and what people are told to do about it."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest

from agent.app.servers.serving import Serving
from agent.app.servers.speed_guard import guard_for, plain_profile
from agent.bench.baseline import FILE_NAME, Baseline, store_baseline
from agent.config.model import Server, Settings
from agent.core.events import Notice, StepFinished
from agent.core.stats import StepStats
from agent.server.caps import Capabilities
from agent.server.model_file import ModelFile
from agent.server.profile import Profile, Speculation
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
        name="mine",
        target=ModelFile(file=file),
        draft=ModelFile(file="draft.gguf") if kind == "draft" else None,
        speculation=Speculation.model_validate({"kind": kind}),
    )
    settings = Settings(server=Server(fallback=fallback))
    return Serving(profile, cast("Any", Loaded(settings)), "f")


def told(one: Serving, endpoint: Endpoint, baseline: Measured | None = Measured()) -> list[Notice]:
    guard = guard_for(one, endpoint, lambda _: baseline)
    return [notice for _ in range(5) if (notice := guard.observe(SLOW))]


@pytest.fixture(autouse=True)
def no_profiles_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("AGENT_STATE_HOME", str(tmp_path / "state"))


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
    assert not guard.wants_change


class SamplingModel:
    """Notes what it is told to send from now on."""

    def __init__(self) -> None:
        self.sampling: dict[str, object] = {}

    def change_sampling(self, **values: object) -> None:
        self.sampling.update(values)


class BeeServing(Serving):
    """A server whose binary is one of BeeLlama's before 0.4."""

    def capabilities(self) -> Capabilities:
        return Capabilities(
            dialect="bee-0.3", source="llama-server", version="", switches=frozenset(), valued=frozenset()
        )


async def test_server_that_takes_the_length_of_drafts_with_a_request_is_not_started_again():
    given = serving("draft", fallback="plain")
    profile = given.profile.model_copy(update={"engine": "llama-server"})
    guard = guard_for(BeeServing(profile, given.loaded, "f"), OURS, lambda _: Measured())
    model = SamplingModel()
    first = [notice.text for _ in range(3) if (notice := guard.observe(SLOW))]
    change = await guard.change(OURS, model, lambda _: None)

    assert change is not None
    assert model.sampling == {"speculative.n_max": 1}
    assert change.endpoint is None
    assert change.event == Notice(text="the server drafts at most 1 token at once")
    assert [text.rpartition("; ")[2] for text in first] == [
        "from the next turn on it drafts at most 1 token at once"
    ]
    second = [notice.text for _ in range(5) if (notice := guard.observe(SLOW))]
    assert [text.rpartition("; ")[2] for text in second] == [
        "from the next turn on it goes without the draft"
    ]
    assert guard.wants_change


def test_shorter_drafts_have_to_be_as_good_as_whole_ones_were():
    asked: list[str | None] = []

    def stored(endpoint: Endpoint) -> None:
        asked.append(endpoint.fingerprint)

    given = serving("draft", fallback="plain")
    shorter = replace(given, fingerprint="whole").with_drafts_of(2).with_drafts_of(1)
    guard_for(shorter, replace(OURS, fingerprint="short"), stored)
    assert asked == ["whole"]
    assert (shorter.profile.speculation.n_max, shorter.draft_limit) == (1, 1)


def test_draft_that_was_kept_because_nothing_else_came_up_is_not_watched():
    kept = replace(serving("draft", fallback="plain"), keeps_draft=True)
    assert told(kept, OURS) == []


def test_profile_with_the_same_model_and_no_draft_is_the_remedy():
    assert plain_profile(serving()) == ""
    target = ModelFile(file="gemma-4-31B-it-Q4_K_S.gguf")
    profile = Profile(name="mine", engine="llama-server", target=target)
    assert plain_profile(replace(serving(), profile=profile)) == "gemma4-31b"


@pytest.mark.parametrize(("profile", "speculation", "is_told"), [
    ("gemma4-31b", "none", True), ("gemma4-31b-dflash", "draft-dflash", False), ("embedded", "none", False),
])  # fmt: skip
def test_speed_that_was_measured_without_drafting_is_what_it_is_compared_with(
    tmp_path: Path, profile: str, speculation: str, is_told: bool
):
    measured = Baseline(
        profile=profile, suite="agent", decode_rate=40.0, prompt_rate=None, speculation=speculation,
        accept_rate=None, machine="", samples=3, measured_at="2026-01-01T00:00:00+00:00",
    )  # fmt: skip
    store_baseline(tmp_path / "state" / FILE_NAME, "another fingerprint", measured)
    one = serving(file="gemma-4-31B-it-Q4_K_S.gguf")
    one = replace(one, profile=one.profile.model_copy(update={"engine": "llama-server"}))
    guard = guard_for(one, OURS, lambda _: None)
    slow = replace(SLOW, stats=StepStats(decoded_tokens=300, decode_seconds=10.0, drafted=9, accepted=5))
    notices = [notice.text for _ in range(6) if (notice := guard.observe(slow))]
    words = "slower with drafts than without: 30.0 tok/s"
    assert [text.startswith(words) for text in notices] == [True] * is_told
