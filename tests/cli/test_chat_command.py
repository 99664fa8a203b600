"""`agent` without a command."""

import subprocess
import sys

import pytest

from agent.cli.main import run
from agent.core.errors import ExitCode


def test_without_a_terminal_agent_alone_names_the_command_that_needs_none():
    done = subprocess.run(
        [sys.executable, "-m", "agent"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (ExitCode.USAGE, "")
    assert "hint: `agent run -p" in done.stderr


@pytest.mark.parametrize("argument", ["--continue", "--resume=abc", "--mode=plan"])
def test_options_of_the_interface_need_a_terminal(argument: str, capsys: pytest.CaptureFixture[str]):
    assert run([argument]) == ExitCode.USAGE
    assert "needs a terminal" in capsys.readouterr().err


def test_a_wrong_mode_is_a_mistake_in_one_line(capsys: pytest.CaptureFixture[str]):
    assert run(["--mode", "fast"]) == ExitCode.USAGE
    assert "not 'fast'" in capsys.readouterr().err


def test_no_command_but_the_interface_loads_textual():
    code = "import sys; from agent.cli.main import run; run(['--version'])"
    check = f"import atexit, sys; atexit.register(lambda: print('textual' in sys.modules)); {code}"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "False"


def test_a_mistyped_option_is_told_with_what_was_meant(capsys: pytest.CaptureFixture[str]):
    assert run(["--contineu"]) == ExitCode.USAGE
    assert "did you mean --continue?" in capsys.readouterr().err


def test_help_names_the_options_of_the_interface(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        run(["--help"])
    assert "--continue" in capsys.readouterr().out
