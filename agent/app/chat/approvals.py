"""A gate with a person behind it: what the rules neither allow nor refuse becomes a question."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agent.app.extras.skill_shelf import SKILL_TOOL
from agent.app.turns.workbench import mode_for
from agent.core.errors import AgentError, UsageError
from agent.core.events import (
    ApprovalRequest,
    ApprovalSettled,
    Event,
    Notice,
    ToolFinished,
    ToolStarted,
    TurnStarted,
    UserMessageAdded,
)
from agent.core.executor import GateDecision
from agent.core.handle import Answer, SessionMode
from agent.core.tool import Tool, ToolContext, ToolResult
from agent.permissions.gate import Decision, decide, may_read
from agent.permissions.rules import Rule, Rules, parse_rule
from agent.permissions.unreadable import unreadable_places
from agent.sandbox.commands import Sandbox

KeepRule = Callable[[str], Awaitable[Path]]
"""Keeps an allow rule for good, and says in which file."""

_BRINGS_TEXT = ("```", "@")
"""A message with one of these may hold text of others: what a command printed, or a file that it mentions."""

_DENIED = "the user does not want this"


@dataclass(slots=True, kw_only=True)
class PersonGate:
    """The executor's gate of a live session.

    `mode` and `rules` may be changed at any time and hold from the next call on. `emit` shows events,
    `context` is what tools get, for a preview of their changes.
    """

    workspace: Path
    mode: SessionMode
    rules: Rules
    protected: tuple[Path, ...]
    context: ToolContext
    emit: Callable[[Event], None]
    keep_rule: KeepRule
    _open: dict[str, asyncio.Future[Answer]] = field(default_factory=dict)
    _sandbox: Sandbox | None = None
    _auto_allow: bool = False
    _asked: int = 0
    _call_id: str = ""
    _has_read: bool = False

    def __post_init__(self) -> None:
        self.context = replace(self.context, may_read=self.may_read)

    def confine(self, sandbox: Sandbox, *, auto_allow: bool) -> None:
        """Runs commands in `sandbox`; `auto_allow` asks about fewer of them where it is in force."""
        self._sandbox = sandbox
        self._auto_allow = auto_allow
        self.context = replace(self.context, confinement=sandbox)
        sandbox.unreadable = lambda: unreadable_places(self.rules, self.workspace)

    def release(self) -> None:
        """Removes what the sandbox kept for its commands. For the end of a session."""
        if self._sandbox is not None:
            self._sandbox.close()

    def grant(self, rules: tuple[Rule, ...]) -> None:
        """Allows for this session what a skill in use is allowed."""
        self.rules = self.rules.including(*rules)

    def has_read(self) -> bool:
        """Whether a tool or the message itself has given the model text of others in this turn."""
        return self._has_read

    def observe(self, event: Event) -> None:
        """Sees the events of a turn: a question names the call that it is about."""
        if isinstance(event, TurnStarted):
            self._has_read = False
        elif isinstance(event, UserMessageAdded):
            self._has_read |= any(mark in event.text for mark in _BRINGS_TEXT)
        elif isinstance(event, ToolStarted):
            self._call_id = event.call_id
        elif isinstance(event, ToolFinished):
            self._call_id = ""  # what a person mentions in a message is no call
            self._has_read |= event.tool != SKILL_TOOL

    def answer(self, request_id: str, answer: Answer) -> None:
        """Answers an open question; any other is ignored, and so is a second answer."""
        waiting = self._open.get(request_id)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    async def decide(self, tool: Tool, arguments: Mapping[str, Any]) -> GateDecision:
        # Here and not only in `observe`, as that sees no call of a sub-agent.
        self._has_read |= tool.name != SKILL_TOOL
        if tool.access == "execute":
            trusted = self._auto_allow and self._sandbox is not None and await self._sandbox.in_force()
            # The first command loads the shell grammar, which takes as long as many frames.
            decision = await asyncio.to_thread(self._decision, tool, arguments, confined=trusted)
        else:
            decision = self._decision(tool, arguments)
        if decision.verdict != "ask":
            return GateDecision(decision.verdict == "allow", decision.reason, places=decision.places)
        preview = await asyncio.to_thread(_preview, tool, arguments, self.context)
        if preview is not None and preview.is_error:
            return GateDecision(False, preview.model_text, hopeless=True)
        commands = await asyncio.to_thread(_commands, tool, arguments)
        request = ApprovalRequest(
            request_id=self._next_id(),
            call_id=self._call_id,
            tool=tool.name,
            arguments=arguments,
            reason=decision.reason,
            suggested_rule=decision.suggested_rule or "",
            commands=commands,
            diffs=preview.diffs if preview is not None else (),
        )
        settled = await self._settled(request.request_id, await self._ask(request))
        return replace(settled, places=decision.places)

    def may_read(self, path: Path) -> bool:
        """Whether a file may be read without a question, for a tool that reads many. Holds at once."""
        return may_read(path, workspace=self.workspace, mode=self.mode, rules=self.rules)

    def _decision(self, tool: Tool, arguments: Mapping[str, Any], *, confined: bool = False) -> Decision:
        return decide(
            tool.name,
            tool.access,
            arguments,
            workspace=self.workspace,
            mode=mode_for(tool.name, self.mode, confined=confined),
            rules=self.rules.called_by(getattr(tool, "called_as", ""), tool.name),
            protected=self.protected,
            headless=False,
        )

    def _next_id(self) -> str:
        self._asked += 1
        return f"approval-{self._asked}"

    async def _ask(self, request: ApprovalRequest) -> Answer:
        waiting: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._open[request.request_id] = waiting
        self.emit(request)
        try:
            return await waiting
        except asyncio.CancelledError:
            self.emit(ApprovalSettled(request_id=request.request_id, outcome="withdrawn"))
            raise
        finally:
            del self._open[request.request_id]

    async def _settled(self, request_id: str, answer: Answer) -> GateDecision:
        if answer.kind == "deny":
            reason = answer.reason.strip()
            self.emit(ApprovalSettled(request_id=request_id, outcome="deny", reason=reason))
            return GateDecision(False, f"{_DENIED}: {reason}" if reason else _DENIED)
        kind = answer.kind if answer.rule.strip() else "once"
        kept = ""
        try:
            if kind in ("session", "always"):
                self.rules = self.rules.including(
                    parse_rule(answer.rule.strip(), "allow", "an answer in this session")
                )
            if kind == "always":
                kept = f" in {await self.keep_rule(answer.rule.strip())}"
        except asyncio.CancelledError:
            self.emit(ApprovalSettled(request_id=request_id, outcome=kind))
            raise
        except (AgentError, OSError) as error:
            # The person has said yes to this call whatever becomes of the rule.
            kind = "once" if isinstance(error, UsageError) and kind == "session" else "session"
            self.emit(Notice(text=f"the rule is not kept for good: {error}", level="warning"))
        self.emit(ApprovalSettled(request_id=request_id, outcome=kind))
        rule = f" by the rule {answer.rule.strip()}{kept}" if kind != "once" else ""
        return GateDecision(True, f"allowed by the user ({kind}){rule}")


def _preview(tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult | None:
    """What a tool that can say so beforehand would do. Reads files."""
    preview = getattr(tool, "preview", None)
    if preview is None:
        return None
    try:
        return preview(tool.params.model_validate(dict(arguments)), context)
    except (AgentError, OSError, ValidationError):
        return None


def _commands(tool: Tool, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """The simple commands of a shell line, those behind `timeout 5` and the like included."""
    line = arguments.get("command")
    if tool.access != "execute" or not isinstance(line, str):
        return ()
    from agent.permissions.shell import analyse

    return tuple(command.text for command in analyse(line).commands)
