"""Sub-agents: a turn in a conversation of its own, on behalf of one call of the tool `task`.

What it reads stays out of the main conversation. Permissions, hooks, limits, originals for undo and the end
by a person are those of the turn that it works for.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files

from agent.app.turns.delegated import Delegated, report_of
from agent.app.turns.in_view import is_in_view
from agent.app.turns.result_room import compactor_for, result_limit, room_guards
from agent.config.model import Settings
from agent.core.cancel import closing
from agent.core.executor import Gate, ToolExecutor
from agent.core.limits import (
    CallLimit,
    Guard,
    RepetitionGuard,
    SharedLimits,
    StepLimit,
    TimeLimit,
    TokenLimit,
)
from agent.core.loop import run_turn
from agent.core.messages import SystemMessage
from agent.core.tool import Tool, ToolContext, ToolResult
from agent.core.turn import Conversation, TurnServices
from agent.llm.client import ChatModel
from agent.llm.probe import protocol_named
from agent.permissions.rules import Rules, parse_rules
from agent.server.profile import ENGINES_WITH_THEIR_OWN_MODELS, Profile
from agent.session.ledger import SessionLedger
from agent.session.side_record import SideRecord

LEAST_CONTEXT = 16_384
"""Tokens of context from which on sub-agents are offered without being asked for."""

MOST_STEPS = 20
_TO_READ = ("read", "search", "glob", "outline", "skill")
_TO_CHANGE = ("edit", "multi_edit", "apply_patch", "write", "shell")
_NO_STEPS = "There are not enough steps left for a sub-agent. Do it yourself."
_NO_CALLS = "There are not enough tool calls left for a sub-agent. Do it yourself."
_PLAN = "Nothing may be changed now (plan mode), so a sub-agent cannot edit either. Leave out edit."


def offers_subagents(profile: Profile, settings: Settings) -> bool:
    """Whether a session has the tool `task`: by the settings, else by the profile, else by its size.

    One slot without memory for the prompts that lose it would have to read the whole conversation again
    after each sub-agent.
    """
    if settings.subagents != "auto":
        return settings.subagents == "on"
    if profile.model_card.subagents is not None:
        return profile.model_card.subagents
    if profile.engine in ENGINES_WITH_THEIR_OWN_MODELS:
        return profile.context >= LEAST_CONTEXT  # they keep prompts by pages, whatever comes between
    if profile.engine == "remote" and "context" not in profile.model_fields_set:
        return False  # nothing is known about the model
    keeps_prompts = profile.slots > 1 or profile.cache_ram_mib > 0
    return profile.context >= LEAST_CONTEXT and keeps_prompts


def subagent_rules(offered: bool) -> Rules:
    """Starting one needs no question, as each of its calls is judged; a person's rules can forbid it."""
    return parse_rules(allow=("task",), source="the sub-agents of this session") if offered else Rules()


@dataclass(slots=True, kw_only=True)
class Delegator:
    """The `core.tool.Delegate` of one turn.

    `limits` stand among the guards of that turn too. `secrets` stay out of the transcripts, which are in
    `subagents/` beside the session's other files.
    """

    model: ChatModel
    tools: Sequence[Tool]
    gate: Gate
    mode: Callable[[], str]
    context: ToolContext
    ledger: SessionLedger
    limits: SharedLimits
    deadline: TimeLimit | None
    reply_tokens: int
    settings: Settings
    secrets: tuple[str, ...] = field(default=(), repr=False)

    async def __call__(self, prompt: str, *, edit: bool, emit: Callable[[str], None]) -> ToolResult:
        if edit and self.mode() == "plan":
            return ToolResult(_PLAN, is_error=True)
        steps = min(MOST_STEPS, self.limits.share_of_steps())
        if steps < 1:
            return ToolResult(_NO_STEPS, is_error=True)
        calls = self.limits.calls.share()
        if calls is None:
            return ToolResult(_NO_CALLS, is_error=True)
        tools = self._tools(edit=edit)
        protocol = protocol_named(self.model.protocol.name, tools)
        slot = await self.model.slot_beside()
        model = self.model.sibling(protocol, cancel=asyncio.Event(), slot=slot)
        text = files("agent").joinpath("prompts/subagent.md").read_text("utf-8").strip()
        conversation = Conversation(messages=[SystemMessage(protocol.system_text(text))])
        done = Delegated(emit=emit)
        transcript = SideRecord(self.context.spill_folder.parent, self.secrets)
        try:
            services = self._services(model, tools, steps, calls, conversation)
            async with closing(run_turn(conversation, prompt, services)) as events:
                async for event in events:
                    done.observe(event)
                    transcript.add(event)
        finally:
            self.limits.spend(done.steps, done.tokens)
            transcript.close()
            await model.close()
        return report_of(done)

    def _tools(self, *, edit: bool) -> list[Tool]:
        names = _TO_READ + (_TO_CHANGE if edit else ())
        return [tool for tool in self.tools if tool.name in names or tool.access == "finish"]

    def _services(
        self,
        model: ChatModel,
        tools: Sequence[Tool],
        steps: int,
        calls: CallLimit,
        conversation: Conversation,
    ) -> TurnServices:
        workspace = self.context.workspace
        context = replace(
            self.context,
            ledger=self.ledger.apart(),
            delegate=None,
            is_in_view=lambda name, text: is_in_view(conversation.messages, workspace, name, text),
        )
        compactor = compactor_for(model, self.settings, self.reply_tokens)
        guards: list[Guard] = [
            StepLimit(steps),
            calls,
            TokenLimit(self.limits.share_of_tokens() or 0),
            *room_guards(model, self.reply_tokens, compactor),
            RepetitionGuard(),
        ]
        if self.deadline is not None and self.deadline.remaining is not None:
            guards.append(TimeLimit(max(1.0, self.deadline.remaining / 2)))
        return TurnServices(
            model=model,
            executor=ToolExecutor(
                tools,
                gate=self.gate,
                context=context,
                result_limit=lambda: result_limit(model, self.reply_tokens, compactor),
            ),
            guards=guards,
            compactor=compactor,
            reply_tokens=self.reply_tokens,
        )
