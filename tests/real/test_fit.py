"""The estimate of memory against an engine that is started now, with a real model and with odd shapes."""

import os
from pathlib import Path
from typing import Any

import pytest

from agent.resources import data_folder
from agent.server.download import obtain
from agent.server.fit import ServerSettings, estimate
from agent.server.gguf import read_header
from agent.server.model_shape import shape_of
from agent.server.profile_files import load_profile
from tests.server.engine_memory import SYNTHETIC_CASES, assert_near, measure, read_measured, synthetic_models

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

ROOT = Path(__file__).parents[2]
ONE_OF_EACH_KIND = [
    case
    for case in SYNTHETIC_CASES
    if case[2].get("speculation") in ("dflash", "mtp") or (case[0], case[2]) == ("gemma3", {"context": 8192})
]


def check(model: Path, draft: Path | None, settings: ServerSettings) -> None:
    of_draft = shape_of(read_header(draft)) if draft else None
    need = estimate(shape_of(read_header(model)), of_draft, settings)
    assert_near(need, read_measured(measure(model, draft, settings)))


@pytest.mark.parametrize(
    "settings",
    [
        {"context": 2048},
        {"context": 8192, "kv_type_k": "q8_0", "kv_type_v": "q8_0", "ubatch": 256},
        {"context": 1024, "slots": 3, "flash_attention": False},
    ],
    ids=["plain", "quantised", "slots"],
)
def test_the_estimate_for_a_real_model_is_near_what_the_engine_reports(settings: dict[str, Any]):
    folder = os.environ.get("AGENT_MODELS_FOLDER")
    profile = load_profile("embedded-small", [ROOT / "server_profiles"])
    model = obtain(profile.model_files[0], Path(folder) if folder else data_folder() / "models")
    check(model, None, ServerSettings(**settings))


@pytest.mark.parametrize("case", ONE_OF_EACH_KIND, ids=lambda case: f"{case[0]}-{case[1]}-{case[2]}")
def test_the_estimate_for_other_shapes_is_near_what_the_engine_reports(
    case: tuple[str, str | None, dict[str, Any]], tmp_path: Path
):
    paths = synthetic_models(tmp_path)
    check(paths[case[0]], paths[case[1]] if case[1] else None, ServerSettings(**case[2]))
