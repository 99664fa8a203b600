"""Each fault of a model or a server has one outcome, and none stays in the history."""

import pytest

from benchmarks.faults import FAULTS, MADE, TASK, Fault
from benchmarks.recovery import poisoned
from tests.conftest import StartServer
from tests.e2e.conftest import Place

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_fault_has_its_outcome(fault: Fault, place: Place, scripted_server: StartServer):
    server = scripted_server(*fault.script(), **fault.server)
    place.use(server.url)
    done = place.run("run", "-p", TASK, "--output", "jsonl", *fault.arguments)

    assert done.code == fault.exit_code, done.err
    assert fault.says in " ".join((*done.out.splitlines(), done.err))
    assert (place.workspace / "made.txt").exists() == fault.made
    if fault.made:
        assert (place.workspace / "made.txt").read_text("utf-8") == MADE
    assert not (place.workspace / "guessed.txt").exists()
    if fault.chats:
        assert len(server.chats) == fault.chats
    assert [poisoned(request.body) for request in server.chats] == [""] * len(server.chats)
    ends = [record for record in done.records if record["type"] == "turn_finished"]
    assert len(ends) == 1
