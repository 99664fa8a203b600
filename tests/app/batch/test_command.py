"""What the command line says about a batch that goes on."""

from pathlib import Path

import pytest

from agent.app.batch.command import run_batch
from agent.app.batch.record import BatchRecord, TaskEntry
from agent.app.run.request import RunRequest
from agent.core.private_folder import make_private_folder


@pytest.mark.parametrize(("asked", "used"), [(3, 3), (None, 1)])
def test_a_batch_that_goes_on_runs_as_many_at_once_as_are_asked_for_now(
    work: Path, capsys: pytest.CaptureFixture[str], asked: int | None, used: int
):
    record = BatchRecord(
        id="20260501-120000-ffff", root=str(work), subfolder="", commit="0", flags={}, jobs=1
    )
    record.tasks += [TaskEntry(name="a", source="a.md", file="a.md", branch="a", worktree="a", state="done")]
    make_private_folder(record.folder)
    record.save()
    run_batch(RunRequest(task=None, prompt=None), [], jobs=asked, resume="last")
    assert f"0 of 1 tasks to do, at most {used} at once" in capsys.readouterr().err
