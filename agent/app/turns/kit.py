"""What a conversation works with: tools, sandbox, extensions and MCP servers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agent.app.extras.extensions import Extensions, load_extensions
from agent.app.files.authorship import Authorship, OwnCommands
from agent.app.mcp.servers import McpServers, open_mcp
from agent.app.turns.confining import required_or_refused, sandbox_for
from agent.app.turns.delegation import offers_subagents
from agent.app.turns.outlined import offers_outline
from agent.app.turns.workbench import tool_environment
from agent.core.events import Event
from agent.core.tool import Tool
from agent.permissions.gate import decide
from agent.permissions.rules import parse_rules
from agent.sandbox.commands import Sandbox
from agent.server.profile import Profile
from tools import built_in_tools
from tools.shell import ShellTool

if TYPE_CHECKING:
    from agent.app.turns.conversation import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """What a conversation works with, before it is known what it is about."""

    tools: tuple[Tool, ...]
    shell: ShellTool
    environment: Mapping[str, str]
    sandbox: Sandbox
    extensions: Extensions
    mcp: McpServers
    has_subagents: bool


async def kit_for(setting: "Setting", emit: Callable[[Event], None]) -> Kit:
    profile, settings = setting.profile, setting.settings
    helped = offers_subagents(profile, settings)
    built_in, shell = tools_for(setting.authorship, profile, subagents=helped)
    environment = tool_environment(setting.key_variables)
    sandbox = sandbox_for(
        setting.workspace,
        settings,
        environment,
        unattended=lambda: True,
        readable=(setting.spill_folder,),
        emit=emit,
    )
    await required_or_refused(sandbox)
    extensions = await load_extensions(
        setting.workspace,
        settings,
        setting.authorship,
        session_id=setting.spill_folder.parent.name,
        hook_environment=lambda: environment,
        emit=emit,
        confinement=sandbox,
    )
    mcp = await open_mcp(setting.workspace, settings, environment=environment, emit=emit)
    return Kit(
        tools=extensions.with_tools(mcp.with_tools(built_in, setting.authorship)),
        shell=shell,
        environment=environment,
        sandbox=sandbox,
        extensions=extensions,
        mcp=mcp,
        has_subagents=helped,
    )


def tools_for(
    authorship: Authorship, profile: Profile, *, subagents: bool
) -> tuple[tuple[Tool, ...], ShellTool]:
    """All tools; what the commands of the shell change is taken for the run's own doing.

    Those for the outline and for `subagents` come before the last, which ends a task. A guided model is
    offered one edit at a time.
    """
    card = profile.model_card
    tools = built_in_tools(card.edit_form, several_edits=not card.guided)
    more: list[Tool] = []
    if offers_outline(profile):
        from tools.outline import OutlineTool

        more.append(OutlineTool())
    if subagents:
        from tools.task import TaskTool

        more.append(TaskTool())
    tools = (*tools[:-1], *more, *tools[-1:])
    shell = next(tool for tool in tools if isinstance(tool, ShellTool))
    own = OwnCommands(shell, authorship, only_reads=_reads_only(authorship.ledger.workspace))
    return tuple(own if tool is shell else tool for tool in tools), shell


def _reads_only(workspace: Path) -> Callable[[str], bool]:
    """Tells the commands that can change nothing: those that are allowed where only reading is."""

    def reads_only(command: str) -> bool:
        arguments = {"command": command}
        decision = decide(
            "shell",
            "execute",
            arguments,
            workspace=workspace,
            mode="plan",
            rules=parse_rules(),
            headless=True,
        )
        return decision.verdict == "allow"

    return reads_only
