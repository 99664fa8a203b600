"""Commands made from a few settings, and what is in them in a form that tests can compare."""

import re
from typing import Any

from agent.server.argv import Command, Places, command_for
from agent.server.caps import Capabilities, built_in
from agent.server.profile import DialectName, Profile


def make(dialect: DialectName | Capabilities = "llama.cpp", **changes: Any) -> Command:
    """The command of a minimal profile with `changes`, for a built-in dialect or for given capabilities."""
    table = {"name": "p", "engine": "llama-server", "target": {"file": "t.gguf"}, **changes}
    capabilities = built_in(dialect) if isinstance(dialect, str) else dialect
    return command_for(Profile.model_validate(table), capabilities, Places(target="t.gguf", draft="d.gguf"))


def words(made: Command) -> set[tuple[str, ...]]:
    """Each argument as its words."""
    return {argument.words for argument in made.arguments}


def pairs(line: str) -> set[tuple[str, ...]]:
    """A line that somebody else wrote, as `words` gives it."""
    return {tuple(part.split()) for part in re.split(r"\s+(?=--?[A-Za-z])", line.strip())}


def codes(made: Command) -> tuple[list[str], list[str]]:
    """Codes of refusals and of warnings, without what every open server is warned of."""
    warnings = [notice.code for notice in made.warnings if notice.code != "cors"]
    return [notice.code for notice in made.refusals], warnings
