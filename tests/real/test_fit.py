"""The estimate of memory against an engine that is started now, with a real model and with odd shapes."""

import os
from pathlib import Path
from typing import Any

import pytest

from agent.resources import data_folder
from agent.server.download import obtain
from agent.server.fit import MIB, Estimate, ServerSettings, estimate
from agent.server.gguf import read_header
from agent.server.model_shape import shape_of
from agent.server.profile_files import load_profile
from tests.real.llama_server import memory_words, serving
from tests.real.tiny_pair import BLOCK_SIZE, write_tiny_pair
from tests.server.engine_memory import (
    SYNTHETIC_CASES,
    assert_near,
    measure,
    memory_lines,
    read_measured,
    synthetic_models,
)

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
ONE_OF_EACH_KIND = [
    case
    for case in SYNTHETIC_CASES
    if case[2].get("speculation") in ("dflash", "mtp") or (case[0], case[2]) == ("gemma3", {"context": 8192})
]


REAL_SETTINGS = pytest.mark.parametrize(
    "settings",
    [
        {"context": 2048},
        {"context": 8192, "kv_type_k": "q8_0", "kv_type_v": "q8_0", "ubatch": 256},
        {"context": 1024, "slots": 3, "flash_attention": False},
        {"context": 1024, "slots": 2, "unified_kv": True},
    ],
    ids=["plain", "quantised", "slots", "unified"],
)


def needed(model: Path, draft: Path | None, settings: ServerSettings) -> Estimate:
    of_draft = shape_of(read_header(draft)) if draft else None
    return estimate(shape_of(read_header(model)), of_draft, settings)


def check(model: Path, draft: Path | None, settings: ServerSettings) -> None:
    assert_near(needed(model, draft, settings), read_measured(measure(model, draft, settings)))


def check_binary(
    model: Path, draft: Path | None, settings: ServerSettings, folder: Path, least: int = 0
) -> None:
    with serving(memory_words(model, draft, settings), folder) as server:
        if settings.drafts:
            server.complete(2)  # only then the target reserves what its hidden states need
        lines = memory_lines(server.log)
    assert_near(needed(model, draft, settings), read_measured(lines), least)


def model_of(profile_name: str) -> Path:
    folder = os.environ.get("AGENT_MODELS_FOLDER")
    profile = load_profile(profile_name, [ROOT / "server_profiles"])
    return obtain(profile.model_files[0], Path(folder) if folder else data_folder() / "models")


@pytest.fixture(scope="module")
def small_model() -> Path:
    return model_of("embedded-small")


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return synthetic_models(tmp_path_factory.mktemp("shapes"))


@REAL_SETTINGS
def test_the_estimate_for_a_real_model_is_near_what_the_engine_reports(
    settings: dict[str, Any], small_model: Path
):
    check(small_model, None, ServerSettings(**settings))


@REAL_SETTINGS
def test_the_estimate_for_a_real_model_is_near_what_llama_server_reports(
    settings: dict[str, Any], small_model: Path, tmp_path: Path
):
    check_binary(small_model, None, ServerSettings(**settings), tmp_path)


@pytest.mark.parametrize("settings", [{"context": 8192}, {"context": 4096, "kv_type_k": "q8_0"}])
def test_the_estimate_for_a_larger_model_is_near_what_llama_server_reports(
    settings: dict[str, Any], tmp_path: Path
):
    check_binary(model_of("embedded"), None, ServerSettings(**settings), tmp_path)


@pytest.mark.parametrize(
    "settings",
    [
        {"context": 4096},
        {"context": 2048, "slots": 2},
        {"context": 4096, "draft_kv_type_k": "q8_0", "draft_kv_type_v": "q8_0"},
    ],
    ids=["plain", "slots", "quantised-draft"],
)
def test_the_estimate_for_the_tiny_pair_is_near_what_llama_server_reports(
    settings: dict[str, Any], tmp_path: Path
):
    pair = write_tiny_pair(tmp_path)
    drafting = {"speculation": "dflash", "n_max": BLOCK_SIZE - 1}
    # Its vocabulary is so small that what the formula says of logits is off by half a MiB.
    check_binary(pair.target, pair.draft, ServerSettings(**settings, **drafting), tmp_path, least=MIB)


@pytest.mark.parametrize("case", ONE_OF_EACH_KIND, ids=lambda case: f"{case[0]}-{case[1]}-{case[2]}")
def test_the_estimate_for_other_shapes_is_near_what_llama_server_reports(
    case: tuple[str, str | None, dict[str, Any]], shapes: dict[str, Path], tmp_path: Path
):
    draft = shapes[case[1]] if case[1] else None
    check_binary(shapes[case[0]], draft, ServerSettings(**case[2]), tmp_path)


@pytest.mark.parametrize("case", ONE_OF_EACH_KIND, ids=lambda case: f"{case[0]}-{case[1]}-{case[2]}")
def test_the_estimate_for_other_shapes_is_near_what_the_engine_reports(
    case: tuple[str, str | None, dict[str, Any]], shapes: dict[str, Path]
):
    check(shapes[case[0]], shapes[case[1]] if case[1] else None, ServerSettings(**case[2]))
