"""The benchmark with the real engine and a small model, which drafts from the context."""

import json
import os
from pathlib import Path

import pytest

from agent.cli.main import run
from agent.resources import data_folder
from agent.server.download import obtain
from agent.server.profile_files import load_profile

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

PROFILE = """extends = "embedded-small"
context = 1024
[speculation]
kind = "ngram-mod"
n_match = 6
n_min = 2
n_max = 8
"""


def test_drafting_is_compared_with_none_on_the_real_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    models = Path(os.environ.get("AGENT_MODELS_FOLDER") or data_folder() / "models")
    obtain(load_profile("embedded-small", [ROOT / "server_profiles"]).model_files[0], models)
    monkeypatch.setenv("AGENT_MODELS_FOLDER", str(models))
    for kind in ("CONFIG", "STATE"):
        monkeypatch.setenv(f"AGENT_{kind}_HOME", str(tmp_path / kind.lower()))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config" / "profiles").mkdir(parents=True)
    (tmp_path / "config" / "profiles" / "small.toml").write_text(PROFILE, "utf-8")
    (tmp_path / "again.md").write_text("Repeat: one two three four five six. " * 6, "utf-8")

    what = ("small", "--against-plain", "--prompt-file", "again.md", "--greedy")
    how = ("--runs", "1", "--max-tokens", "24", "--threads", "1", "--json", "-")
    code = run(["bench", *what, *how])

    out, err = capsys.readouterr()
    assert code == 0, err
    table = json.loads(out)
    plain, drafting = (row for row in table["summary"] if row["category"] == "overall")
    assert (plain["profile"], plain["draft_n"], plain["measured_here"]) == ("small-plain", 0, False)
    assert drafting["draft_n"] > 0
    assert drafting["mean_accepted_length"] >= 1
    assert drafting["decode_speedup"]["count"] == 1
    assert table["outputs"][0]["identical"] == 1
