"""The doctor's questions to the real server with a small model."""

import os
from collections.abc import Iterator

import pytest

from agent.app.doctor.finding import Finding
from agent.app.doctor.live import Live
from agent.app.servers.serving import Serving
from agent.bench.baseline import Baseline
from agent.config.load import load_settings
from agent.server.profile import Profile
from agent.server.profile_files import load_profile
from agent.server.record import Endpoint
from tests.real.rig import ROOT, serving

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

PATIENCE_SECONDS = 500.0
CHANGES = {
    "speculation": {"kind": "ngram-mod", "n_match": 12, "n_min": 4, "n_max": 32},
    # Whether the one tool call that is asked for comes out whole is no matter of chance then.
    "sampling": {"temperature": 0.0},
}


@pytest.fixture(scope="module", params=["embedded-small", "embedded"])
def endpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    with serving(request.param, tmp_path_factory.mktemp("doctor"), **CHANGES) as endpoint:
        yield endpoint


def usual(decode_rate: float) -> Baseline:
    """What was measured of the server before: so many tokens per second."""
    return Baseline(
        profile="mine", suite="coding", decode_rate=decode_rate, prompt_rate=None, speculation="",
        accept_rate=None, machine="", samples=1, measured_at="2026-01-01T00:00:00+00:00",
    )  # fmt: skip


async def found_by(endpoint: Endpoint, decode_rate: float) -> dict[str, Finding]:
    shipped = load_profile(endpoint.profile, [ROOT / "server_profiles"])
    profile = Profile.model_validate({**shipped.model_dump(exclude_unset=True), **CHANGES})
    look = Live(
        serving=Serving(profile, load_settings(None, os.environ, {}), "doctor"),
        endpoint=endpoint,
        protocol="constrained",
        baseline=usual(decode_rate),
        patience=PATIENCE_SECONDS,
    )
    return {finding.code: finding async for finding in look.examine()}


async def test_everything_that_a_session_needs_is_found_to_work(endpoint: Endpoint):
    found = await found_by(endpoint, decode_rate=0.01)
    assert {code: finding.level for code, finding in found.items()} == {
        "template": "ok",
        "prefix": "ok",
        "speed": "ok",
        "drafting": "ok",
        "tool-call": "ok",
        "constrained": "ok",
        "turn-prefix": "ok",
    }, found
    assert "accepted" in found["drafting"].message
    assert "0.0 when it was measured last" in found["speed"].message


@pytest.mark.parametrize("endpoint", ["embedded-small"], indirect=True)
async def test_speed_far_below_what_was_measured_is_a_warning(endpoint: Endpoint):
    speed = (await found_by(endpoint, decode_rate=100_000.0))["speed"]
    assert speed.level == "warning"
    assert "100000.0 when it was measured last" in speed.message
