"""Mistyped command lines: one line that says what is wrong, and a hint with the word that was meant."""

from pathlib import Path

import pytest

from agent.cli.main import run


@pytest.mark.parametrize(
    ("line", "complaint", "hint"),
    [
        ("rnu", "there is no command 'rnu'", "did you mean run?"),
        ("zzzz", "there is no command 'zzzz'", "see `agent --help`"),
        ("server strat", "there is no action 'strat'", "did you mean start?"),
        ("mcp adr", "there is no action 'adr'", "did you mean add?"),
        ("run --jbos 2 a.md", "there is no option --jbos", "did you mean --jobs?"),
        ("mcp add x --evn A=1 -- foo --bar", "there is no option --evn", "did you mean --env?"),
        ("run --zzzz", "there is no option --zzzz", "see `agent run --help`"),
        ("undo a b", "unrecognized arguments: b", "see `agent undo --help`"),
        ("mcp logs x -n some", "-n/--lines takes a whole number, not 'some'", "see `agent mcp logs --help`"),
        ("run --max-seconds x", "--max-seconds takes a number, not 'x'", "see `agent run --help`"),
        (
            "run -p x --output jsn",
            "--output takes text, json or jsonl, not 'jsn'",
            "did you mean json?",
        ),
    ],
)
def test_a_mistyped_line_is_told_with_what_was_meant(
    line: str, complaint: str, hint: str, capsys: pytest.CaptureFixture[str]
):
    assert run(line.split()) == 2
    assert capsys.readouterr().err == f"agent: {complaint}\nhint: {hint}\n"


@pytest.mark.parametrize("kind", ["CONFIG", "STATE", "DATA", "CACHE"])
@pytest.mark.parametrize("line", ["session list", "run -p x", "server status"])
def test_a_file_where_a_folder_of_the_persons_belongs_is_told(
    line: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "file"
    file.write_text("", "utf-8")
    monkeypatch.setenv(f"AGENT_{kind}_HOME", str(file))
    assert run(line.split()) == 2
    assert capsys.readouterr().err == (
        f"agent: {file} is not a folder\n"
        f"hint: choose another with AGENT_{kind}_HOME, or move the file out of the way\n"
    )
