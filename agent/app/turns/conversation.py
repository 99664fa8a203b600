"""Puts a conversation together: protocol, model, tools, check and first message."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from agent.app.extras.extensions import tool_rules
from agent.app.files.authorship import Authorship, OwnCheck
from agent.app.mcp.servers import McpServers
from agent.app.servers.foreign import connection_to, speaks_llama
from agent.app.servers.warm import Head, head_of
from agent.app.turns.briefing import Briefing, gather, is_document, new_files_in
from agent.app.turns.delegation import subagent_rules
from agent.app.turns.kit import Kit, kit_for
from agent.app.turns.tool_pictures import shown_to
from agent.app.turns.workbench import RuleGate, Workbench, gate_rules
from agent.config.model import Settings
from agent.core.attempts import run_attempts
from agent.core.briefing import listing_line
from agent.core.events import Event, Notice
from agent.core.guide import Surroundings
from agent.core.limits import TimeLimit
from agent.core.messages import SystemMessage
from agent.core.regular_file import read_regular
from agent.core.tool import Tool, ToolContext
from agent.core.turn import Conversation
from agent.core.verifier import Verdict
from agent.core.worklog import WorkLog
from agent.headless.task import Task
from agent.llm.client import ChatModel, Recover
from agent.llm.probe import protocol_named
from agent.llm.protocol import ToolProtocol
from agent.permissions.context import Mode
from agent.permissions.unreadable import unreadable_places
from agent.resources import cache_folder, config_folder, state_folder
from agent.sandbox.commands import Sandbox
from agent.server.profile import Profile
from agent.server.record import Endpoint
from agent.session.ledger import SessionLedger
from agent.session.store import secrets_in
from agent.verify.check import CheckCommand
from tools.shell import ShellTool

if TYPE_CHECKING:
    from agent.app.extras.task_words import TaskWords

HEADLESS_MODES: dict[Mode, Mode] = {"ask": "accept-edits"}
"""Where a person would be asked before each edit, an unattended run may edit inside of the workspace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenConversation:
    """A conversation that is ready to run."""

    system_text: str
    prompt: str
    bench: Workbench
    shell: ShellTool
    mcp: McpServers
    sandbox: Sandbox
    head: Head

    def events(self, begin: Callable[[SystemMessage], Conversation] | None = None) -> AsyncIterator[Event]:
        """Does the task. For `begin` see `run_attempts`."""
        return run_attempts(self.system_text, self.prompt, self.bench, begin)

    async def close(self) -> None:
        """Ends what the model left running, and lets go of the connection."""
        self.shell.stop_background()
        self.sandbox.close()
        await self.mcp.close()
        await self.bench.model.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Where and with what a conversation takes place. `recover` brings back a server that crashed.

    `key_variables` are environment variables that commands of the model must not see. A conversation that
    `goes_on` has `replies_before`, and is never begun afresh; `log` has what was done in it, `news` what has
    changed since.
    """

    workspace: Path
    settings: Settings
    profile: Profile
    endpoint: Endpoint
    protocol: str
    ledger: SessionLedger
    authorship: Authorship
    spill_folder: Path
    key_variables: tuple[str, ...]
    deadline: TimeLimit
    cancel: asyncio.Event
    recover: Recover | None = None
    goes_on: bool = False
    replies_before: int = 0
    log: WorkLog | None = None
    news: str = ""


async def open_conversation(task: Task, setting: Setting, emit: Callable[[Event], None]) -> OpenConversation:
    """Runs the check once to see how things stand, and words the first message with it."""
    kit = await kit_for(setting, emit)
    try:
        return await _opened_with(kit, task, setting, emit)
    except BaseException:  # nobody else knows yet what was begun
        kit.sandbox.close()
        await kit.mcp.close()
        raise


async def _opened_with(
    kit: Kit, task: Task, setting: Setting, emit: Callable[[Event], None]
) -> OpenConversation:
    gate = await _gate_for(task, setting, kit)
    context = replace(_tool_context(setting, kit), may_read=gate.may_read)
    # What the task is about stands in its own words, not in those of a skill.
    words = await _words_of(task, kit, gate, context, setting.cancel, emit)
    verifier = _check(task, setting, kit)
    baseline, briefing = await asyncio.gather(_baseline(verifier, emit), _briefing(task, setting, gate))
    shown = tuple(setting.workspace / file.path for file in briefing.files)
    for path in shown:
        setting.ledger.record(path)
    opening = await kit.extensions.opening(
        task.text, context_tokens=setting.endpoint.context_tokens, listing=briefing.listing
    )
    protocol = protocol_named(setting.protocol, kit.tools)
    bench = Workbench(
        settings=setting.settings,
        task=task,
        card=setting.profile.model_card,
        tools=kit.tools,
        gate=gate,
        context=context,
        ledger=setting.ledger,
        model=_model_of_a_run(setting, protocol, kit),
        verifier=verifier,
        shown=shown,
        surroundings=_surroundings(task, setting, gate, briefing, baseline),
        deadline=setting.deadline,
        cancel=setting.cancel,
        extensions=kit.extensions,
        goes_on=setting.goes_on,
        log=setting.log,
        tools_of_skill=frozenset(rule.tool for rule in words.rules) if words else frozenset(),
        has_looked=words is not None and words.has_printed,
        secrets=(setting.endpoint.api_key, *secrets_in(os.environ)),
    )
    message = briefing.message(replace(task, text=words.text) if words else task, baseline)
    message = "\n\n".join(filter(None, [setting.news, message]))
    return _worded_for(bench, kit, protocol, opening, briefing, message)


def _model_of_a_run(setting: Setting, protocol: ToolProtocol, kit: Kit) -> ChatModel:
    other = other_protocol(setting, kit.tools)
    return model_for(setting, protocol, replies_before=setting.replies_before, other=other)


def _worded_for(
    bench: Workbench, kit: Kit, protocol: ToolProtocol, opening: str, briefing: Briefing, message: str
) -> OpenConversation:
    """What the model is told first: the system text, then opening, briefing and the guide's cue as one."""
    guide = bench.guide()
    system_text = protocol.system_text(system_prompt())
    beginning = "\n\n".join(filter(None, [opening, listing_line(briefing.listing)]))
    said = [opening, message, guide.cue() if guide else ""]
    prompt = "\n\n".join(filter(None, said))
    bench.gate.note_message(prompt)
    return OpenConversation(
        head=head_of(protocol, system_text, beginning),
        system_text=system_text,
        prompt=prompt,
        bench=bench,
        shell=kit.shell,
        mcp=kit.mcp,
        sandbox=kit.sandbox,
    )


async def _briefing(task: Task, setting: Setting, gate: RuleGate) -> Briefing:
    return await asyncio.to_thread(
        gather,
        task,
        setting.workspace,
        context_tokens=setting.endpoint.context_tokens,
        attach=setting.profile.model_card.attach_mentioned_files,
        may_read=gate.may_read,
    )


async def _words_of(
    task: Task,
    kit: Kit,
    gate: RuleGate,
    context: ToolContext,
    cancel: asyncio.Event,
    emit: Callable[[Event], None],
) -> "TaskWords | None":
    """None where the task says itself what it is about."""
    if not task.text.lstrip().startswith("/"):
        return None
    from agent.app.extras.task_words import TaskWording

    wording = TaskWording(
        extensions=kit.extensions,
        mcp=kit.mcp,
        shell=next(tool for tool in kit.tools if tool.name == kit.shell.name),
        gate=gate,
        context=context,
        cancel=cancel,
        emit=emit,
    )
    return await wording.of(task.text)


async def _gate_for(task: Task, setting: Setting, kit: Kit) -> RuleGate:
    """With what the sandbox and the extensions allow."""
    gate = _gate(task, setting)
    kit.sandbox.unreadable = lambda: unreadable_places(gate.rules, setting.workspace)
    gate.confined = setting.settings.sandbox.auto_allow and await kit.sandbox.in_force()
    gate.rules += tool_rules(kit.extensions.shelf) + kit.mcp.rules + subagent_rules(kit.has_subagents)
    kit.extensions.shelf.grant = gate.grant
    kit.extensions.shelf.is_swayed = gate.has_read
    return gate


def _surroundings(
    task: Task, setting: Setting, gate: RuleGate, briefing: Briefing, baseline: Verdict | None
) -> Surroundings:
    names = [name for name in briefing.listing if not name.startswith(".")]
    return Surroundings(
        files={name: _line_count(setting.workspace / name) for name in names},
        shown=frozenset(file.path for file in briefing.files),
        mentioned=_changeable(briefing.mentioned),
        new_files=new_files_in(task.text, setting.workspace),
        may_change=gate.may_change,
        has_check=baseline is not None,
        check_passes=baseline is not None and baseline.passed,
        retry_temperature=setting.profile.model_card.retry_temperature,
        blocks=speaks_llama(setting.endpoint),
    )


def _changeable(mentioned: Sequence[str]) -> tuple[str, ...]:
    """What a task names it mostly wants changed, but not the documents beside the code."""
    return tuple(name for name in mentioned if not is_document(name)) or tuple(mentioned)


def _line_count(path: Path) -> int:
    try:
        return read_regular(path).count(b"\n")
    except OSError:
        return 0


def other_protocol(setting: Setting, tools: Sequence[Tool]) -> ToolProtocol | None:
    """The way out where a server of somebody else, which is not tried beforehand, refuses the chosen one."""
    if setting.endpoint.fingerprint is not None or setting.profile.tools.protocol != "auto":
        return None
    return protocol_named("native" if setting.protocol == "constrained" else "constrained", tools)


def model_for(
    setting: Setting, protocol: ToolProtocol, *, replies_before: int = 0, other: ToolProtocol | None = None
) -> ChatModel:
    """The model behind the setting's server. `other` is for one that refuses the way of calling tools."""
    return ChatModel(
        connection_to(setting.endpoint, setting.profile),
        protocol,
        context_tokens=setting.endpoint.context_tokens,
        sampling=setting.profile.sampling.model_dump(exclude_none=True),
        cancel=setting.cancel,
        replies_before=replies_before,
        other_protocol=other,
        recover=setting.recover,
    )


def _gate(task: Task, setting: Setting) -> RuleGate:
    mode = setting.settings.permissions.mode
    return RuleGate(
        workspace=setting.workspace,
        mode=HEADLESS_MODES.get(mode, mode),
        rules=gate_rules(setting.settings, task),
        protected=(config_folder(), state_folder()),
    )


def _tool_context(setting: Setting, kit: Kit) -> ToolContext:
    return ToolContext(
        workspace=setting.workspace,
        ledger=setting.ledger,
        spill_folder=setting.spill_folder,
        emit=lambda _: None,
        environment=kit.environment,
        shell_timeout_seconds=setting.settings.limits.shell_seconds,
        confinement=kit.sandbox,
        cache_folder=cache_folder(),
        picture=shown_to(setting.endpoint, setting.spill_folder.parent),
    )


def system_prompt() -> str:
    return files("agent").joinpath("prompts/system.md").read_text("utf-8").strip()


def _check(task: Task, setting: Setting, kit: Kit) -> OwnCheck | None:
    if not task.check:
        return None
    seconds = setting.settings.limits.check_seconds
    check = CheckCommand(
        task.check,
        setting.workspace,
        environment=kit.environment,
        timeout_seconds=seconds,
        confinement=kit.sandbox,
    )
    return OwnCheck(check, setting.authorship)


async def _baseline(verifier: OwnCheck | None, emit: Callable[[Event], None]) -> Verdict | None:
    if verifier is None:
        return None
    verdict = await verifier.run()
    emit(verdict.event)
    if verdict.cannot_start:
        remark = "correct the command, unless the task is to make it"
        emit(Notice(text=f"the check cannot start: {verdict.cannot_start} ({remark})", level="warning"))
    return verdict
