"""Mistyped command lines: one line that says what is wrong, and a hint with the word that was meant."""

import argparse
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from agent.cli.arguments import Parser
from agent.cli.elsewhere import COMMANDS, command_hint
from agent.cli.leaf_help import DESCRIPTIONS, EXAMPLES, examples_of
from agent.cli.main import COMMANDS as MAIN_COMMANDS
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
        ("run --bogus", "there is no option --bogus", "see `agent run --help`"),
        ("run --zzzz", "there is no option --zzzz", "see `agent run --help`"),
        ("-c", "there is no option -c", "did you mean --continue?"),
        ("--model x", "there is no option --model", "did you mean --profile?"),
        (
            "--profile mine doctor",
            "doctor is a command, and options come behind it",
            "see `agent doctor --help`",
        ),
        (
            "-C . server status",
            "server is a command, and options come behind it",
            "see `agent server --help`",
        ),
        (
            "--profile mine run -p hi",
            "run is a command, and options come behind it",
            "see `agent run --help`",
        ),
        ("run -m x -p hi", "there is no option -m", "did you mean --profile?"),
        ("run --max-turns 3 a.md", "there is no option --max-turns", "did you mean --max-steps?"),
        (
            "--print hello",
            "there is no option --print",
            "`agent run -p 'what to do'` does a task without a person watching",
        ),
        (
            "fix the bug",
            "there is no command 'fix'",
            "see `agent --help`; what the model is to do goes into quotes: agent 'what to do'",
        ),
        ("-p", "argument -p/--prompt: expected one argument", "see `agent run --help`"),
        ("server ls", "there is no action 'ls'", "did you mean status?"),
        ("mcp ls", "there is no action 'ls'", "did you mean list?"),
        ("model download", "there is no action 'download'", "did you mean pull?"),
        ("config get limits", "there is no action 'get'", "did you mean show?"),
        ("login", "there is no command 'login'", "no account is needed; `agent setup` gets a model running"),
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


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["fix the bug"], "'fix the bug'"),
        (["fix the bug", "--profile", "embedded"], "'fix the bug'"),
        (["--continue", "it's late"], "'it'\"'\"'s late'"),
        (["--resume", "fix the bug"], "'fix the bug'"),
        (["--", "-p is an odd option"], "'what to do'"),
        (["修复"], "'修复'"),
        (["a b\nc"], "'what to do'"),
        (["chat"], "'what to do'"),
    ],
)
def test_a_prompt_is_for_the_interface_which_names_the_command_that_needs_no_terminal(
    words: list[str], command: str, capsys: pytest.CaptureFixture[str]
):
    assert run(words) == 2
    assert capsys.readouterr().err == (
        "agent: the terminal interface needs a terminal\n"
        f"hint: `agent run -p {command}` does a task without one; or use --plain\n"
    )


@pytest.mark.parametrize(
    "words", [["-p", "hi"], ["--profile", "zzz", "-p", "hi"], ["--prompt=hi", "--profile=zzz"]]
)
def test_a_prompt_behind_an_option_is_a_run(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "file"
    file.write_text("", "utf-8")
    assert run([*words, "-C", str(file), "--output", "json"]) == 2
    assert '"type"' in capsys.readouterr().out


@pytest.mark.parametrize("word", [*COMMANDS, "help me"])
def test_every_command_that_a_hint_names_has_a_help_text(word: str, capsys: pytest.CaptureFixture[str]):
    for line in re.findall(r"`agent ([a-z][a-z ]*[a-z])", command_hint(word)):
        if line != "alone":
            with pytest.raises(SystemExit) as ended:
                run([*line.split(), "--help"])
            assert not ended.value.code


@pytest.mark.parametrize("group", ["config", "mcp", "model", "profile", "server", "session", "skills"])
def test_a_group_without_an_action_shows_what_there_is(group: str, capsys: pytest.CaptureFixture[str]):
    run([group])
    assert "required" not in capsys.readouterr().err


def leaves(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The commands below a parser that have none below them."""
    groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not groups:
        yield parser
    for group in groups:
        for below in group.choices.values():
            yield from leaves(below)


@pytest.mark.parametrize("name", MAIN_COMMANDS)
def test_every_command_says_in_its_help_what_it_does_and_gives_an_example_that_parses(name: str):
    top = Parser(prog="agent")
    import_module(f"agent.cli.{name}").add_parser(top.add_subparsers(parser_class=Parser))
    for leaf in leaves(top):
        text = leaf.format_help()
        assert leaf.description, f"{leaf.prog} has no description"
        assert all(action.help for action in leaf._actions), f"an option of {leaf.prog} has no help"
        lines = re.findall(rf"^ +((?:{leaf.prog}|agent) .*)", text.partition("\nexample")[2], re.MULTILINE)
        assert lines, f"{leaf.prog} has no example"
        for line in examples_of(leaf.prog).splitlines()[1:]:
            top.parse_args(shlex.split(line.partition("|")[0])[1:])


def test_the_table_of_examples_has_no_command_that_is_gone():
    top = Parser(prog="agent")
    subparsers = top.add_subparsers(parser_class=Parser)
    for name in MAIN_COMMANDS:
        import_module(f"agent.cli.{name}").add_parser(subparsers)
    assert {*EXAMPLES, *DESCRIPTIONS} <= {leaf.prog for leaf in leaves(top)}


@pytest.mark.parametrize("line", ["help", "help run", "help server fit"])
def test_help_is_a_command_too(line: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        run(line.split())
    assert not ended.value.code
    assert capsys.readouterr().out.startswith(f"usage: {line.replace('help', 'agent')} ")


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
