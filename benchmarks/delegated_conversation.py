"""A conversation with a real model that hands one piece of work to a sub-agent, and what its prompts cost."""

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.app.turns.conversation import system_prompt
from agent.app.turns.delegation import Delegator
from agent.app.turns.workbench import RuleGate
from agent.config.model import Settings
from agent.core.guide import Offer
from agent.core.limits import SharedLimits
from agent.core.messages import Message, SystemMessage, UserMessage
from agent.core.model import Reply
from agent.core.stats import StepStats
from agent.core.tool import Tool, ToolContext
from agent.llm.client import ChatModel, Connection
from agent.llm.protocol import ConstrainedProtocol
from agent.permissions.rules import Rules
from agent.session.ledger import SessionLedger
from benchmarks.real_conversation import PAGE
from tools import built_in_tools
from tools.task import TaskTool

REPLY_TOKENS = 48
SUBAGENT_STEPS = 2
_WORK = "Say which files there are in this folder, and read one of them."


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegation:
    """The main conversation's requests before and after a sub-agent, and what the sub-agent did."""

    before: StepStats
    after: StepStats
    subagent_steps: int
    subagent_tokens: int

    @property
    def prompt(self) -> int:
        """Tokens of the conversation's prompt before the sub-agent began.

        The reply to it is not among them: a small model bound by a schema makes tokens that the server cuts
        differently when they come back as text, with or without a sub-agent.
        """
        return self.before.cached_tokens + self.before.prompt_tokens

    @property
    def share_kept(self) -> float:
        """Share of that prompt which came from the server's cache afterwards."""
        return min(1.0, self.after.cached_tokens / self.prompt)


async def delegate_once(base_url: str, api_key: str, context_tokens: int, pages: int = 24) -> Delegation:
    """Two requests of a conversation of some 900 to 1,500 tokens with a sub-agent's work in between.

    Raises RuntimeError when the server fails or the sub-agent takes no step.
    """
    tools: tuple[Tool, ...] = (*built_in_tools()[:-1], TaskTool(), *built_in_tools()[-1:])
    protocol = ConstrainedProtocol(tools)
    model = ChatModel(
        Connection(base_url=base_url, api_key=api_key),
        protocol,
        context_tokens=context_tokens,
        sampling={"temperature": 0.0},
        cancel=asyncio.Event(),
    )
    text = "".join(PAGE.format(number=number) for number in range(pages))
    messages: list[Message] = [
        SystemMessage(protocol.system_text(system_prompt())),
        UserMessage(f"Here is what there is to know:\n{text}\nUse a task."),
    ]
    try:
        first = await _reply(model, messages)
        with tempfile.TemporaryDirectory() as folder:
            report, spent = await _delegate(model, tools, Path(folder))
        messages += [first.message, UserMessage(f"Result of task:\n{report}")]
        second = await _reply(model, messages)
    finally:
        await model.close()
    return Delegation(
        before=first.stats, after=second.stats, subagent_steps=spent[0], subagent_tokens=spent[1]
    )


async def _delegate(model: ChatModel, tools: Sequence[Tool], folder: Path) -> tuple[str, tuple[int, int]]:
    """The report of a sub-agent, and its steps and generated tokens."""
    workspace = folder / "work"
    workspace.mkdir()
    (workspace / "notes.txt").write_text("Some notes.\n" * 20, "utf-8")
    limits = _CountingLimits(2 * SUBAGENT_STEPS, 0)
    ledger = SessionLedger(workspace, folder)
    try:
        delegator = Delegator(
            model=model,
            tools=tools,
            gate=RuleGate(workspace=workspace, mode="accept-edits", rules=Rules(), protected=()),
            mode=lambda: "accept-edits",
            context=ToolContext(
                workspace=workspace, ledger=ledger, spill_folder=folder / "output", emit=lambda _: None
            ),
            ledger=ledger,
            limits=limits,
            deadline=None,
            reply_tokens=REPLY_TOKENS,
            settings=Settings(),
        )
        result = await delegator(_WORK, edit=False, emit=lambda _: None)
    finally:
        ledger.close()
    if not limits.spent[0]:
        raise RuntimeError(f"the sub-agent did nothing: {result.model_text}")
    return result.model_text, limits.spent


class _CountingLimits(SharedLimits):
    spent = (0, 0)

    def spend(self, steps: int, tokens: int) -> None:
        super().spend(steps, tokens)
        self.spent = (steps, tokens)


async def _reply(model: ChatModel, messages: Sequence[Message]) -> Reply:
    last = None
    async for item in model.generate(messages, max_tokens=REPLY_TOKENS, offer=Offer()):
        last = item
    if not isinstance(last, Reply) or last.error:
        raise RuntimeError(last.error if isinstance(last, Reply) else "the stream had no end")
    return last
