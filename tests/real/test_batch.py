"""A batch of two tasks on the installed llama-server with two slots and a small model (SmolLM2, 98 MB)."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.resources import data_folder
from agent.server.download import obtain
from agent.server.profile_files import load_profile
from tests.e2e.conftest import ROOT, Place
from tests.e2e.test_git import git, make_repository
from tests.real.llama_server import real_binary

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

PROFILE = """\
engine = "llama-server"
context = 2048
slots = 2
threads = 1
cache_ram_mib = 64
[target]
file = "{file}"
[tools]
protocol = "constrained"
[model_card]
max_reply_tokens = 24
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A repository, and a home with the profile `small`; its server is stopped at the end."""
    shipped = load_profile("embedded-small", [ROOT / "server_profiles"]).model_files[0]
    folder = os.environ.get("AGENT_MODELS_FOLDER")
    model = obtain(shipped, Path(folder) if folder else data_folder() / "models")
    made = Place(tmp_path)
    make_repository(made.workspace)
    made.variables |= {"AGENT_PROFILE": "small", "AGENT_SERVER_BINARY": str(real_binary())}
    made.profile("small", PROFILE.format(file=model))
    yield made
    made.run("server", "stop", "--force")


def test_two_tasks_at_once_share_one_server_and_come_to_their_results(place: Place):
    for name in ("a", "b"):
        (place.folder / f"{name}.md").write_text(f"Make {name}.txt.\n", "utf-8")
    before = git(place.workspace, "rev-parse", "HEAD")
    done = place.run("run", "../a.md", "../b.md", "--jobs", "2", "--max-steps", "1", "--output", "json")
    results = [task["result"] for task in done.result["tasks"]]
    # What so small a model does with one step is up to it; a server that failed would be a 5.
    assert all(result["exit_code"] in (0, 1, 3, 4) for result in results), done.err
    assert all(result["steps"] == 1 for result in results)
    assert done.code == max(result["exit_code"] for result in results)
    assert git(place.workspace, "rev-parse", "HEAD") == before
    assert git(place.workspace, "status", "--porcelain") == ""
    branches = git(place.workspace, "branch", "--format", "%(refname:short)").splitlines()
    for task in done.result["tasks"]:
        # The model may have written its file, or something else, or nothing: then there is no branch to name.
        assert task["branch"] is None or task["branch"] in branches
        assert task["branch"] or not task["result"]["files_changed"]
    assert len(branches) == 1 + sum(task["branch"] is not None for task in done.result["tasks"])
