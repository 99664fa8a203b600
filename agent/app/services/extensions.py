"""Services of a live session about what a project and a person brought along.

| name | arguments | gives |
|---|---|---|
| `skills` | | a list of `SkillRow` |
| `skill` | `name`, `arguments` (optional) | the text to send, with what the skill says |
| `commands` | | a list of `CommandRow`: custom commands and skills that can be typed behind a slash |
| `expand` | `name`, `arguments` (optional) | the text to send for a custom command, else for a skill |
| `init` | | the text to send to have AGENTS.md written |
"""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from agent.app.extras.command_trust import worded
from agent.app.extras.extensions import Extensions, find_custom_commands, find_skills
from agent.app.extras.skill_shelf import trusted_names
from agent.core.errors import UsageError
from agent.core.outside_text import one_line
from agent.skills.commands import CustomCommand
from agent.skills.discover import Found
from agent.skills.printed import Printing


@dataclass(frozen=True, slots=True)
class SkillRow:
    """`origin` is project, user or bundled; an untrusted one is marked."""

    name: str
    origin: str
    description: str


@dataclass(frozen=True, slots=True)
class CommandRow:
    """`takes` names the arguments, empty where nothing is known of them; `kind` is command or skill."""

    name: str
    summary: str
    takes: str
    kind: str
    origin: str


@dataclass(frozen=True, slots=True)
class ExtensionServices:
    """Each method is one service. Files are read anew each time, so that a person can edit them meanwhile.

    `printing` runs the commands that skills and custom commands of the person's have in their texts.
    """

    extensions: Extensions
    printing: Printing

    async def skills(self, _: Mapping[str, Any]) -> list[SkillRow]:
        return await asyncio.to_thread(self._skill_rows)

    async def skill(self, arguments: Mapping[str, Any]) -> str:
        name, rest = _name(arguments), _rest(arguments)
        # Not in a thread: what the skill is allowed and says of itself goes to the session.
        return await self.extensions.shelf.by_hand(name, rest, self.printing)

    async def commands(self, _: Mapping[str, Any]) -> list[CommandRow]:
        return await asyncio.to_thread(self._command_rows)

    async def expand(self, arguments: Mapping[str, Any]) -> str:
        name, rest = _name(arguments), _rest(arguments)
        command, is_skill, passed_over = await asyncio.to_thread(self._meant, name)
        if passed_over is not None:
            self.extensions.notify(
                f"this repository has a command /{name} that is not used, as it is not trusted and yours has "
                f"that name; `agent trust` shows it and allows it"
            )
        if command is not None:
            if not command.trusted:
                self.extensions.notify(
                    f"the command /{name} is sent as words of this repository and not as yours; "
                    "`agent trust` shows it and changes that"
                )
            return await worded(command, rest, self.printing)
        if not is_skill:
            raise UsageError(f"there is no command /{one_line(name, 60)}", "/help lists them")
        return await self.extensions.shelf.by_hand(name, rest, self.printing)

    async def init(self, _: Mapping[str, Any]) -> str:
        text = files("agent").joinpath("prompts/init.md").read_text("utf-8")
        return " ".join(text.split())  # one paragraph, which each terminal wraps as it is wide

    def _meant(self, name: str) -> tuple[CustomCommand | None, bool, CustomCommand | None]:
        """The command of that name, whether it is a skill instead, and a command that an own one kept out."""
        workspace = self.extensions.workspace
        found = find_custom_commands(workspace, os.environ)
        command = found.get(name)
        if command is not None and command.trusted:
            kept_out = (one for one in found.shadowed if one.name == name and not one.trusted)
            return command, False, next(kept_out, None)
        skills = find_skills(workspace, os.environ)
        if skills.get(name) is None:
            return command, False, None
        if command is not None and name not in _own_skills(skills):
            return command, False, None
        return None, True, command

    def _skill_rows(self) -> list[SkillRow]:
        found = find_skills(self.extensions.workspace, os.environ)
        trusted = trusted_names(found, os.environ)
        return [
            SkillRow(
                skill.name,
                skill.scope if skill.name in trusted else f"{skill.scope}, not trusted",
                one_line(skill.description, 100),
            )
            for skill in found.skills
        ]

    def _command_rows(self) -> list[CommandRow]:
        workspace = self.extensions.workspace
        skills = find_skills(workspace, os.environ)
        own = _own_skills(skills)
        rows = {
            command.name: CommandRow(
                command.name,
                command.description,
                command.takes,
                "command",
                command.scope if command.trusted else f"{command.scope}, not trusted",
            )
            for command in find_custom_commands(workspace, os.environ).commands
            if command.trusted or command.name not in own
        }
        for skill in skills.skills:
            row = CommandRow(skill.name, one_line(skill.description, 200), skill.takes, "skill", skill.scope)
            rows.setdefault(skill.name, row)
        return sorted(rows.values(), key=lambda row: row.name)


def _own_skills(found: Found) -> frozenset[str]:
    """Names of the skills that come before an untrusted command of the project."""
    try:
        return trusted_names(found, os.environ)
    except UsageError:  # a damaged record of trust says nothing about any project
        return frozenset(skill.name for skill in found.skills if skill.scope != "project")


def _name(arguments: Mapping[str, Any]) -> str:
    name = arguments.get("name")
    if not isinstance(name, str) or not name.strip():
        raise UsageError("the command needs a text 'name'")
    return name.strip().removeprefix("/")


def _rest(arguments: Mapping[str, Any]) -> str:
    rest = arguments.get("arguments", "")
    if not isinstance(rest, str):
        raise UsageError("the 'arguments' of a command are one text")
    return rest
