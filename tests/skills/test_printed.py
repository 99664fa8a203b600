"""Commands in the text of a skill or custom command."""

import pytest

from agent.skills.commands import expand, printed_in
from agent.skills.printed import MOST_COMMANDS, commands_in, with_outputs


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("The change: !`git diff` and !`git log -1`.", ["git diff", "git log -1"]),
        ("!`ls`\n!`ls`", ["ls"]),
        ("- State: !` git status `", ["git status"]),
        ("Write it as hey!`ls`", []),
        ("Only `ls` and !ls", []),
        ("!`a\nb`", []),
        ("```\n!`ls`\n```\nthen !`pwd`", ["pwd"]),
        ("````md\n```\n!`ls`\n```\n````", []),
        ("~~~\n!`ls`\n~~~", []),
        ("", []),
    ],
)
def test_command_is_what_stands_in_backticks_behind_a_mark(text: str, commands: list[str]):
    assert commands_in(text) == commands


def test_only_so_many_are_run():
    assert len(commands_in(" ".join(f"!`echo {number}`" for number in range(50)))) == MOST_COMMANDS


def test_output_stands_fenced_in_the_place_of_its_command():
    text = with_outputs("State: !`git status`\nMend it.", {"git status": "clean"})
    assert text == "State: `git status` prints:\n```\nclean\n```\n\nMend it."


def test_output_cannot_end_its_fence_and_no_command_in_it_is_looked_at():
    text = with_outputs("!`a` !`b`", {"a": "```\n!`b`", "b": "B"})
    assert text == "`a` prints:\n````\n```\n!`b`\n````\n `b` prints:\n```\nB\n```\n"


def test_command_that_was_not_run_is_shown_as_one_to_run():
    assert with_outputs("First !`make all`.", {}) == "First `make all`."


def test_argument_in_a_command_is_one_word_for_the_shell():
    assert printed_in("!`git log $1` !`grep $ARGUMENTS`", "'a b; rm x' c") == [
        "git log 'a b; rm x'",
        "grep 'a b; rm x' c",
    ]


def test_places_in_commands_count_as_places_for_arguments():
    body = "Of $2: !`git show $1`"
    [command] = printed_in(body, "v1 all")
    text = expand(body, "v1 all", {command: "tag v1, costs $2"})
    assert text == "Of all: `git show v1` prints:\n```\ntag v1, costs $2\n```"
