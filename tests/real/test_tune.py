"""A search with the real engine: a small model, one thread, hardly any time."""

import json
import os
from pathlib import Path

import pytest

from agent.cli.main import run
from agent.resources import data_folder
from agent.server.download import obtain
from agent.server.profile_files import load_profile
from agent.server.record import list_records

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(300)]


def test_candidates_are_measured_on_the_real_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    models = Path(os.environ.get("AGENT_MODELS_FOLDER") or data_folder() / "models")
    obtain(load_profile("embedded-small", [ROOT / "server_profiles"]).model_files[0], models)
    monkeypatch.setenv("AGENT_MODELS_FOLDER", str(models))
    for kind in ("CONFIG", "STATE"):
        monkeypatch.setenv(f"AGENT_{kind}_HOME", str(tmp_path / kind.lower()))
    monkeypatch.chdir(tmp_path)

    what = ("--only", "kinds", "--threads", "1", "--limit", "1", "--osl", "8")
    code = run(["tune", "embedded-small", *what, "--minutes", "1.5", "--json"])

    out, err = capsys.readouterr()
    assert code == 0, err
    table = json.loads(out)
    base, *others = table["visits"]
    assert base["readings"][0]["pred_t_s"] > 0
    assert base["readings"][0]["draft_n"] == 0
    assert not [visit["failure"] for visit in others if visit["failure"]]
    written = tmp_path / "config" / "profiles" / "embedded-small-tuned.toml"
    assert written.exists() == table["confirmed"]
    assert not list_records(tmp_path / "state" / "run")
