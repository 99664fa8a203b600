"""`agent completion` gives a shell what it needs to complete the command line."""

import subprocess

import pytest

from agent.cli.completion import SHELLS, script
from agent.cli.main import COMMANDS

_ASK = """
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_LINE="${{COMP_WORDS[*]}}"
COMPREPLY=(); _shtab_agent; echo "${{COMPREPLY[*]}}"
"""


def completed(line: str) -> set[str]:
    """What bash offers for the last word."""
    text = script("bash", ("small", "large")) + _ASK.format(words=line)
    done = subprocess.run(["bash", "--norc"], input=text, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("agent unt", set()),
        ("agent tr", {"trust"}),
        ("agent server st", {"start", "stop", "status", "states"}),
        ("agent run --profile s", {"small"}),
        ("agent --profile l", {"large"}),
        ("agent server start ''", {"small", "large"}),
        ("agent run --max-st", {"--max-steps"}),
        ("agent --mode p", {"plan"}),
    ],
)
def test_bash_is_offered_commands_options_values_and_profiles(line: str, offered: set[str]):
    assert completed(line) >= offered
    assert completed(line) - {"-h", "--help", "--json"} == offered


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_is_known_to_every_shell(shell: str):
    text = script(shell, ())
    assert [name for name in COMMANDS if name not in text] == []
