"""Each fault of a model or a server has one outcome, and none stays in the history."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.cli.main import run
from benchmarks.faults import FAULTS, MADE, TASK, Fault
from benchmarks.recovery import poisoned
from tests.conftest import StartServer

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def place(work: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A workspace of a person without settings; the command leaves no trace in this process."""
    monkeypatch.setenv("HOME", str(work.parent))
    before = signal.getsignal(signal.SIGTERM)
    yield work
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_fault_has_its_outcome(
    fault: Fault,
    place: Path,
    scripted_server: StartServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    server = scripted_server(*fault.script(), **fault.server)
    for name, value in {"AGENT_SERVER_URL": server.url, **fault.variables}.items():
        monkeypatch.setenv(name, value)
    code = run(["run", "-C", str(place), "-p", TASK, "--output", "jsonl", *fault.arguments])
    said = capsys.readouterr()

    assert code == fault.exit_code, said.err
    assert fault.says in " ".join((*said.out.splitlines(), said.err))
    assert (place / "made.txt").exists() == fault.made
    if fault.made:
        assert (place / "made.txt").read_text("utf-8") == MADE
    assert not (place / "guessed.txt").exists()
    if fault.chats:
        assert len(server.chats) == fault.chats
    assert [poisoned(request.body) for request in server.chats] == [""] * len(server.chats)
    kinds = [json.loads(line)["type"] for line in said.out.splitlines()]
    assert kinds.count("turn_finished") == 1
