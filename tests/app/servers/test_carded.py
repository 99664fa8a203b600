"""The card of a model that is only known once its server answers."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.app.servers.carded import card_in_force, completed_profile
from agent.app.servers.serving import Serving, choose
from agent.config.load import load_settings
from agent.core.errors import UsageError
from agent.server.model_file import ModelFile
from agent.server.profile import Profile, Sampling
from agent.server.record import Endpoint
from tests.server.gguf_models import write_gguf

Served = Callable[..., Serving]


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Served:
    for kind in ("CONFIG", "STATE", "DATA", "CACHE"):
        monkeypatch.setenv(f"AGENT_{kind}_HOME", str(tmp_path / kind.lower()))

    def make(**changes: Any) -> Serving:
        serving = choose(load_settings(None, os.environ, {"server.url": "http://127.0.0.1:1"}))
        return replace(serving, profile=serving.profile.model_copy(update=changes))

    return make


def endpoint(*names: str, fingerprint: str | None = None) -> Endpoint:
    return Endpoint(
        base_url="http://127.0.0.1:1", api_key="", profile="box", context_tokens=8192, names=names,
        fingerprint=fingerprint,
    )  # fmt: skip


def test_server_of_somebody_else_gets_the_sampling_of_the_model_that_it_names(served: Served):
    profile = completed_profile(served(), endpoint("local", "Qwen3-Coder-30B-A3B-Q4_K_M.gguf"))
    assert (profile.card, profile.sampling.top_k, profile.engine) == ("qwen3-coder", 20, "remote")


def test_template_of_a_model_elsewhere_is_told_what_its_card_says(served: Served):
    named = completed_profile(served(reasoning="off"), endpoint("gpt-oss-20b"))
    assert named.template_arguments == {"reasoning_effort": "low"}
    assert completed_profile(served(), endpoint("Qwen3.6-27B")).preserve_reasoning is True
    ours = completed_profile(served(), endpoint("Qwen3.6-27B", fingerprint="x"))
    assert ours.preserve_reasoning is None


def test_what_the_profile_says_itself_wins(served: Served):
    profile = completed_profile(served(sampling=Sampling(temperature=0.1)), endpoint("gemma-4-31b"))
    assert (profile.sampling.temperature, profile.sampling.top_k) == (0.1, 64)


def test_unknown_model_leaves_the_profile_as_it_is(served: Served):
    serving = served()
    assert completed_profile(serving, endpoint("something")) is serving.profile


def test_profile_without_a_card_gets_none(served: Served):
    assert card_in_force(served(card="none"), endpoint("gemma-4-31b")) is None


async def test_model_that_is_bad_at_calls_is_bound_to_them(served: Served):
    assert await served().tool_protocol(endpoint("qwen2.5-coder-7b-instruct")) == "constrained"
    assert await served().tool_protocol(endpoint("gemma-4-31b")) == "native"


def test_file_whose_name_says_nothing_is_known_by_its_header(served: Served, tmp_path: Path):
    file = write_gguf(tmp_path / "mine.gguf", "qwen3", {"general.name": "mine"}, [])
    own = Profile(name="mine", engine="llama-server", target=ModelFile(file=str(file)))
    serving = replace(served(), profile=own)
    assert completed_profile(serving, endpoint(fingerprint="x")).card == "qwen3"


def test_card_of_the_person_that_is_wrong_is_told_in_a_line(served: Served, tmp_path: Path):
    file = tmp_path / "config" / "profiles" / "cards" / "mine.toml"
    file.parent.mkdir(parents=True)
    file.write_text('[match]\nnames = ["mine"]\n[sampling]\ntemperature = "hot"\n', "utf-8")
    with pytest.raises(UsageError) as told:
        completed_profile(served(), endpoint("mine"))
    assert told.value.message.startswith(f"{file}: sampling.temperature")
    assert "\n" not in told.value.message
