"""Command lines and task files of `agent run` that cannot work: told at once, in one line and a hint."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.cli.main import run


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of its own to be in, and a server that would be noticed missing if it were asked."""
    for kind in ("CONFIG", "STATE", "DATA"):
        monkeypatch.setenv(f"AGENT_{kind}_HOME", str(tmp_path / kind.lower()))
    monkeypatch.setenv("AGENT_SERVER_URL", "http://127.0.0.1:9")
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "task.md").write_text("Do it\n", "utf-8")
    monkeypatch.chdir(folder)
    former = signal.getsignal(signal.SIGTERM)
    yield folder
    signal.signal(signal.SIGTERM, former)
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", "task.md has no task in it"),
        (b"---\ncheck: make\n---\n\n", "task.md has no task in it"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "task.md is not a text file"),
        (b"\xff\xfeT\x00a\x00s\x00k\x00", "task.md is not a text file"),
        (b"---\nchek: make\n---\nDo it\n", "task.md: unknown key 'chek' in the front matter"),
        (b"---\nmax_steps: many\n---\nDo it\n", "task.md: max_steps in the front matter has to be"),
        (b"---\ncheck: [a\n---\nDo it\n", "the front matter is no YAML"),
        (b"---\ncheck: make\nDo it\n", "task.md: the front matter is not closed"),
        (b"---\nallow: ['shell(']\n---\nDo it\n", "shell("),
    ],
)
def test_task_file_that_is_none(
    workspace: Path, content: bytes, error: str, capsys: pytest.CaptureFixture[str]
):
    (workspace / "task.md").write_bytes(content)
    assert run(["run", "task.md"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert error in printed.err.splitlines()[0]
    assert 1 <= len(printed.err.splitlines()) <= 2
    assert "is no YAML" not in error or "hint: write one `key: value` a line" in printed.err


def test_session_that_is_to_go_on_without_a_task_is_told_to_be_given_one(
    workspace: Path, capsys: pytest.CaptureFixture[str]
):
    assert run(["run", "--continue"]) == 2
    assert "goes on with a new task" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], "no task was given"),
        (["nope.md"], "there is no task file nope.md"),
        (["."], ". is a folder, not a task file"),
        (["-p", " "], "the text of -p has no task in it"),
        (["-p", "x", "task.md"], "both a task file and -p were given"),
        (["-p", "x", "-C", "nope"], "there is no folder nope"),
        (["-p", "x", "-C", "task.md"], "task.md is not a folder"),
        (["-p", "x", "--max-seconds", "inf"], "--max-seconds has to be above 0, not inf"),
        (["-p", "x", "--max-steps", "many"], "--max-steps takes a whole number, not 'many'"),
        (["-p", "x", "--deny", "("], "("),
        (["-p", "x", "--profile", "embeded"], "unknown profile 'embeded'"),
        (["-p", "x", "--branch", "mine"], "is not in a git repository"),
        (["-p", "x", "--frobnicate"], "there is no option --frobnicate"),
    ],
)
@pytest.mark.parametrize("form", ["text", "json", "jsonl"])
def test_command_line_that_cannot_work(
    arguments: list[str], error: str, form: str, capsys: pytest.CaptureFixture[str]
):
    assert run(["run", *arguments, "--output", form]) == 2
    printed = capsys.readouterr()
    complaint, hint = printed.err.splitlines()
    assert complaint.startswith("agent: ")
    assert error in complaint
    assert hint.startswith("hint: ")
    if form == "text":
        assert printed.out == ""
        return
    assert json.loads(printed.out) == {
        "type": "result",
        "exit_code": 2,
        "error": complaint.removeprefix("agent: "),
        "hint": hint.removeprefix("hint: "),
    }


def test_words_of_a_prompt_are_no_flags(capsys: pytest.CaptureFixture[str]):
    assert run(["run", "-p", "use --output json here", "--frobnicate"]) == 2
    assert capsys.readouterr().out == ""
