"""What a project and a person bring along: skills, instructions, custom commands, hooks. For one session."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from agent.app.extras.skill_shelf import SkillShelf, trusted_names
from agent.app.files.authorship import Authorship
from agent.app.turns.edited import with_edits
from agent.app.turns.formatters import edit_runner
from agent.config.load import find_project_root
from agent.config.model import Settings
from agent.core.confinement import Confinement, Unconfined
from agent.core.errors import UsageError
from agent.core.events import Event, Notice
from agent.core.executor import Gate
from agent.core.outside_text import fenced, one_line
from agent.core.tool import Tool
from agent.core.verifier import Verifier
from agent.edits.runner import EditRunner
from agent.hooks.runner import HookRunner
from agent.hooks.spec import HOOK_EVENTS, specs_from
from agent.permissions.rules import Rules, parse_rules
from agent.repo.files import FileNames, find_mentioned_files, list_files
from agent.repo.instructions import Instructions, budget_for, find_instructions
from agent.resources import config_folder, skills_folder
from agent.skills.discover import Found, discover, places

if TYPE_CHECKING:
    from agent.skills.commands import FoundCommands

_LISTED_FILES = 400
_MOST_COMPLAINTS = 5


@dataclass(slots=True, kw_only=True)
class Extensions:
    """Made by `load_extensions`. Each method wraps one part of a session, or leaves it as it is."""

    workspace: Path
    shelf: SkillShelf
    hooks: HookRunner
    edits: EditRunner
    authorship: Authorship
    notify: Callable[[str], None]
    _briefed: bool = field(default=False)

    def with_tools(self, tools: Sequence[Tool]) -> tuple[Tool, ...]:
        """All tools, the one for skills before the last, which ends a task; hooks see what each does.

        Files are formatted and checked before the hooks see the result of an edit.
        """
        skill = self.shelf.tool()
        found = list(with_edits(tools, self.edits, self.authorship))
        if skill is not None:
            found.insert(len(found) - 1, skill)
        if not self.hooks.has("after_tool"):
            return tuple(found)
        from agent.app.turns.hooked import HookedTool

        return tuple(
            tool if tool.access == "finish" else HookedTool(tool, self.hooks, self.authorship)
            for tool in found
        )

    def guarded(self, gate: Gate) -> Gate:
        if not self.hooks.has("before_tool"):
            return gate
        from agent.app.turns.hooked import HookedGate

        return HookedGate(gate, self.hooks)

    def verifying(self, verifier: Verifier | None) -> Verifier | None:
        if not self.hooks.has("before_finish"):
            return verifier
        from agent.app.turns.hooked import HookedFinish

        return HookedFinish(verifier, self.hooks, self.authorship)

    async def opening(
        self, request: str, *, context_tokens: int, listing: Sequence[str] | None = None
    ) -> str:
        """What the first message begins with: project instructions, and what hooks have to say.

        `request` is what the person asks for: instructions beside the files that it names count too.
        """
        said = await self.at_start()
        instructions = await self.instructions(request, context_tokens=context_tokens, listing=listing)
        return "\n\n".join(filter(None, [instructions, said]))

    async def instructions(
        self, request: str = "", *, context_tokens: int, listing: Sequence[str] | None = None
    ) -> str:
        """The project's instructions as text; what is wrong with them is a notice. See `opening`."""
        found = await asyncio.to_thread(_instructions, self.workspace, request, context_tokens, listing)
        for notice in found.notices:
            self.notify(notice)
        return found.as_text()

    async def at_start(self) -> str:
        """What the hooks of the session's start have to say, the first time; empty later."""
        if self._briefed:
            return ""
        self._briefed = True
        with self.authorship.of_a_command():
            said = await self.hooks.session_start()
        return f"A hook of the user's says:\n{fenced(said)}" if said else ""


def tool_rules(shelf: SkillShelf) -> Rules:
    """Reading a skill needs no question; the person's own rules can still forbid it."""
    if not shelf.found.has_own:
        return Rules()
    return parse_rules(allow=("skill",), source="the skills of this session")


def find_skills(workspace: Path, environment: Mapping[str, str], *, bundled: bool = True) -> Found:
    """All skills for a folder, nearest first. Reads files.

    Raises:
        UsageError: the installation has lost its own.
    """
    root = find_project_root(workspace)
    own = skills_folder() if bundled else None
    return discover(places(workspace, root, personal_folders("skills", environment), own))


def find_custom_commands(workspace: Path, environment: Mapping[str, str]) -> "FoundCommands":
    """All custom commands for a folder, see `agent.skills.commands.find_commands`. Reads files."""
    from agent.app.extras.command_trust import trust_in
    from agent.skills.commands import command_folders, find_commands

    root = find_project_root(workspace)
    folders = command_folders(workspace, root, personal_folders("commands", environment))
    return find_commands(folders, trust_in(environment))


def personal_folders(kind: str, environment: Mapping[str, str]) -> list[Path]:
    """The person's folders for `skills` or `commands`, ours first, then those that other programs share."""
    folders = [config_folder(environment) / kind]
    home = environment.get("HOME", "")
    if home and Path(home).is_absolute():
        folders += [Path(home) / ".agents" / kind, Path(home) / ".claude" / kind]
    return folders


async def load_extensions(
    workspace: Path,
    settings: Settings,
    authorship: Authorship,
    *,
    session_id: str,
    hook_environment: Callable[[], Mapping[str, str]],
    emit: Callable[[Event], None],
    confinement: Confinement | None = None,
) -> Extensions:
    """Looks for skills, and reads the hooks and formatters of the settings. Nothing is run yet."""

    def notify(text: str) -> None:
        emit(Notice(text=text, level="warning"))

    found, trusted = await asyncio.to_thread(_look, workspace)
    for skipped in found.skipped[:_MOST_COMPLAINTS]:
        notify(one_line(f"the skill in {skipped.folder} is left out: {skipped.reason}", 600))
    if len(found.skipped) > _MOST_COMPLAINTS:
        notify(f"{len(found.skipped)} skills are left out; `agent skills list` says why")
    section = settings.hooks
    hooks = HookRunner(
        specs=specs_from({name: getattr(section, name) for name in HOOK_EVENTS}, section.seconds),
        workspace=workspace,
        session_id=session_id,
        environment=hook_environment,
        notify=notify,
        confinement=confinement or Unconfined(),
    )
    shelf = SkillShelf(
        found=found,
        trusted=trusted,
        look_again=lambda: _look_at_all(workspace),
        notify=lambda text: emit(Notice(text=text)),
    )
    edits = await asyncio.to_thread(
        edit_runner, workspace, settings, environment=hook_environment, notify=notify
    )
    edits.confinement = confinement or Unconfined()
    return Extensions(
        workspace=workspace, shelf=shelf, hooks=hooks, edits=edits, authorship=authorship, notify=notify
    )


def _look(workspace: Path) -> tuple[Found, frozenset[str]]:
    """Skills for the prompt. Those of the program alone are none of its business, and stay unread."""
    own = find_skills(workspace, os.environ, bundled=False)
    return _look_at_all(workspace) if own.skills else (own, frozenset())


def _look_at_all(workspace: Path) -> tuple[Found, frozenset[str]]:
    found = find_skills(workspace, os.environ)
    try:
        return found, trusted_names(found, os.environ)
    except UsageError:  # a damaged record of trust says nothing about any project
        return found, frozenset(skill.name for skill in found.skills if skill.scope != "project")


def _instructions(
    workspace: Path, request: str, context_tokens: int, listing: Sequence[str] | None
) -> Instructions:
    is_whole = listing is not None and len(listing) < _LISTED_FILES
    names = FileNames(workspace, listing if is_whole else None)
    return find_instructions(
        workspace,
        find_project_root(workspace),
        budget=budget_for(context_tokens),
        personal=config_folder(),
        mentioned=find_mentioned_files(request, workspace, names),
        listing=list_files(workspace, _LISTED_FILES, names) if listing is None else listing,
    )
