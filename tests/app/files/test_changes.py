"""What a commit is called, and whose a change is."""

from pathlib import Path

import pytest
from pydantic import BaseModel

from agent.app.files.authorship import Authorship, OwnCommands
from agent.app.files.changes import commit_message
from agent.core.tool import Access, ToolContext, ToolResult
from agent.session.ledger import SessionLedger

LONG = "Rename the function that adds two numbers so that its name says what it does in every file"


class Empty(BaseModel):
    pass


class Touching:
    """A tool that writes a file behind the ledger's back."""

    name = "shell"
    description = "Runs."
    params: type[BaseModel] = Empty
    access: Access = "execute"

    def __init__(self, path: Path, text: str) -> None:
        self._path, self._text = path, text

    async def run(self, params: Empty, context: ToolContext) -> ToolResult:
        self._path.write_text(self._text, "utf-8")
        return ToolResult("done")


@pytest.fixture
def ledger(tmp_path: Path) -> SessionLedger:
    (tmp_path / "work").mkdir()
    return SessionLedger(tmp_path / "work", tmp_path / "session")


def context_of(ledger: SessionLedger) -> ToolContext:
    folder = ledger.workspace
    return ToolContext(workspace=folder, ledger=ledger, spill_folder=folder, emit=lambda _: None)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("Fix it.", "Fix it.\n"),
        ("Fix it.\nBecause it was broken.", "Fix it.\n\nBecause it was broken.\n"),
        ("## Fix it\n\nBecause.", "Fix it\n\nBecause.\n"),
        ("", "The task\n"),
        (f"{LONG}.", f"{LONG[:68]} …\n\n… {LONG[69:]}.\n"),
        ("x" * 100, f"{'x' * 70} …\n\n… {'x' * 30}\n"),
    ],
)
def test_commit_message_is_the_models_with_a_first_line_of_fitting_length(answer: str, message: str):
    assert commit_message(answer, "The task") == message
    assert len(message.splitlines()[0]) <= 72


async def test_file_that_a_command_wrote_is_the_runs(ledger: SessionLedger):
    authorship = Authorship(ledger)
    made = ledger.workspace / "made.txt"
    await OwnCommands(Touching(made, "x"), authorship).run(Empty(), context_of(ledger))
    assert authorship.of_the_run([made]) == [made]


def test_file_that_was_written_at_another_time_is_somebody_elses(ledger: SessionLedger):
    long_ago, steady = iter([10**9, 2 * 10**9]), iter([0, 10**9])
    authorship = Authorship(ledger, clock=lambda: next(long_ago), steady=lambda: next(steady))
    with authorship.of_a_command():
        pass
    theirs = ledger.workspace / "theirs.txt"
    theirs.write_text("x", "utf-8")
    assert authorship.of_the_run([theirs]) == []


@pytest.mark.parametrize("days", [1, -1])
@pytest.mark.parametrize("set_before_it_was_written", [True, False])
def test_file_is_the_runs_also_where_the_clock_is_set_while_a_command_runs(
    ledger: SessionLedger, days: int, set_before_it_was_written: bool
):
    made = ledger.workspace / "made.txt"
    made.write_text("x", "utf-8")
    written = made.lstat().st_ctime_ns
    other = written + days * 86_400 * 10**9
    second = 10**9
    times = (other - second, written + second) if set_before_it_was_written else (written - second, other)
    looks, steady = iter(times), iter([0, 2 * second])
    authorship = Authorship(ledger, clock=lambda: next(looks), steady=lambda: next(steady))
    with authorship.of_a_command():
        pass
    assert authorship.covers(made)


def test_file_of_somebody_elses_is_not_the_runs_because_the_clock_was_set(ledger: SessionLedger):
    theirs = ledger.workspace / "theirs.txt"
    theirs.write_text("x", "utf-8")
    hour = 3600 * 10**9
    looks, steady = iter([theirs.lstat().st_ctime_ns - hour, 2 * 10**18]), iter([0, 10**9])
    authorship = Authorship(ledger, clock=lambda: next(looks), steady=lambda: next(steady))
    with authorship.of_a_command():
        pass
    assert not authorship.covers(theirs)


def test_file_is_gone_by_a_command_only_if_there_was_one(ledger: SessionLedger):
    authorship = Authorship(ledger)
    gone = ledger.workspace / "gone.txt"
    assert authorship.of_the_run([gone]) == []
    with authorship.of_a_command():
        pass
    assert authorship.of_the_run([gone]) == [gone]


async def test_file_of_the_run_that_a_command_formats_stays_the_runs(ledger: SessionLedger):
    authorship = Authorship(ledger)
    made = ledger.workspace / "made.txt"
    ledger.before_change(made)
    made.write_text("x=1", "utf-8")
    ledger.record(made)
    await OwnCommands(Touching(made, "x = 1"), authorship).run(Empty(), context_of(ledger))
    assert ledger.foreign_files() == ()
    assert authorship.of_the_run([made]) == [made]
