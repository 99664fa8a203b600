"""What one run works with: tools, gate, ledger, model, limits; and what a fresh attempt resets."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agent.app.extras.extensions import Extensions
from agent.app.extras.skill_shelf import SKILL_TOOL
from agent.app.turns.delegation import Delegator
from agent.app.turns.result_room import compactor_for, result_limit, room_guards
from agent.config.model import Settings
from agent.core.executor import GateDecision, ToolExecutor
from agent.core.guide import SmallModelGuide, Surroundings
from agent.core.limits import (
    AttemptLimit,
    CallLimit,
    Guard,
    RepetitionGuard,
    SharedLimits,
    StepLimit,
    TimeLimit,
    TokenLimit,
)
from agent.core.narrow_guide import NarrowGuide
from agent.core.stats import StepStats
from agent.core.tool import Access, Tool, ToolContext
from agent.core.turn import TurnServices
from agent.core.verifier import Verifier
from agent.core.worklog import WorkLog
from agent.headless.task import Task, protected_globs
from agent.llm.client import ChatModel
from agent.permissions.context import Mode
from agent.permissions.gate import Decision, decide, exact_shell_rule, may_read
from agent.permissions.rules import Rule, Rules, parse_rules
from agent.server.profile import ModelCard
from agent.session.ledger import SessionLedger


@dataclass(slots=True, kw_only=True)
class RuleGate:
    """The permission rules as the executor's gate. Nobody is there to ask, so asking means denying.

    `rules` may grow on the way, by what a skill is allowed.
    """

    workspace: Path
    mode: Mode
    rules: Rules
    protected: tuple[Path, ...]
    confined: bool = False
    _has_read: bool = False

    async def decide(self, tool: Tool, arguments: Mapping[str, Any]) -> GateDecision:
        decision = self._decision(tool.name, tool.access, arguments, getattr(tool, "called_as", ""))
        self._has_read |= tool.name != SKILL_TOOL
        return GateDecision(decision.verdict == "allow", decision.reason, places=decision.places)

    def grant(self, rules: tuple[Rule, ...]) -> None:
        self.rules = self.rules.including(*rules)

    def note_message(self, text: str) -> None:
        """Sees what the model is told first: files, instructions and output of the check stand in fences."""
        self._has_read |= "```" in text

    def has_read(self) -> bool:
        """Whether a tool or the first message may have given the model text of others."""
        return self._has_read

    def may_change(self, path: str) -> bool:
        """Whether the rules let a file in the workspace be written."""
        return self._decision("write", "write", {"path": path}).verdict == "allow"

    def may_read(self, path: Path) -> bool:
        """Whether a file may be read, for a tool that reads many."""
        return may_read(path, workspace=self.workspace, mode=self.mode, rules=self.rules)

    def _decision(
        self, tool: str, access: Access, arguments: Mapping[str, Any], called_as: str = ""
    ) -> Decision:
        return decide(
            tool,
            access,
            arguments,
            workspace=self.workspace,
            mode=mode_for(tool, self.mode, confined=self.confined),
            rules=self.rules.called_by(called_as, tool),
            protected=self.protected,
            headless=True,
        )


def mode_for(tool: str, mode: Mode, *, confined: bool) -> Mode:
    """The mode that a call is judged in: in a sandbox the person may want commands judged as in `auto`."""
    return "auto" if confined and tool == "shell" and mode != "plan" else mode


def gate_rules(settings: Settings, task: Task) -> Rules:
    """All rules of a run. The check is a person's own command, so the model may run it too."""
    own = (exact_shell_rule(task.check),) if task.check else ()
    guarded = tuple(f"write({glob})" for glob in protected_globs(task))
    permissions = settings.permissions
    of_settings = parse_rules(allow=permissions.allow, ask=permissions.ask, deny=permissions.deny)
    of_task = parse_rules(allow=(*task.allow, *own), deny=task.deny, source="the task")
    kept = parse_rules(deny=guarded, source="this run: the task does not ask to change such files")
    return of_settings + of_task + kept


@dataclass(slots=True, kw_only=True)
class Workbench:
    """An `Attempts`: builds the services of each attempt, and undoes what a failed one changed.

    An earlier session that `goes_on` gets one attempt, as starting over would undo the work of before.
    """

    settings: Settings
    task: Task
    card: ModelCard
    tools: Sequence[Tool]
    gate: RuleGate
    context: ToolContext
    ledger: SessionLedger
    model: ChatModel
    verifier: Verifier | None
    shown: tuple[Path, ...]
    surroundings: Surroundings
    deadline: TimeLimit
    cancel: asyncio.Event
    extensions: Extensions
    tools_of_skill: frozenset[str] = frozenset()
    has_looked: bool = False
    goes_on: bool = False
    log: WorkLog | None = None
    secrets: tuple[str, ...] = ()
    calls: CallLimit = field(init=False)

    def __post_init__(self) -> None:
        self.calls = CallLimit(self.task.max_tool_calls or self.settings.limits.max_tool_calls)

    @property
    def count(self) -> int:
        return self.card.attempts if self.verifier is not None and not self.goes_on else 1

    def services(self, attempt: int, spent: StepStats, steps: int) -> TurnServices:
        if attempt > 1 and self.card.retry_temperature is not None:
            self.model.change_sampling(temperature=self.card.retry_temperature)
        guide = self.guide()
        shared = self._shared_limits(spent, steps)
        gate = self.extensions.guarded(self.gate)
        compactor = compactor_for(self.model, self.settings, self.reply_tokens, self.log)
        delegator = Delegator(
            model=self.model,
            tools=self.tools,
            gate=gate,
            mode=lambda: self.gate.mode,
            context=self.context,
            ledger=self.ledger,
            limits=shared,
            deadline=self.deadline,
            reply_tokens=self.reply_tokens,
            secrets=self.secrets,
            settings=self.settings,
        )
        return TurnServices(
            model=self.model,
            executor=ToolExecutor(
                self.tools,
                gate=gate,
                context=replace(self.context, delegate=delegator),
                result_limit=lambda: result_limit(self.model, self.reply_tokens, compactor),
            ),
            guards=[
                *self._guards(guide, spent, steps),
                *room_guards(self.model, self.reply_tokens, compactor),
                shared,
            ],
            verifier=self.extensions.verifying(self.verifier),
            guide=guide,
            compactor=compactor,
            reply_tokens=self.reply_tokens,
            cancel=self.cancel,
        )

    def guide(self) -> SmallModelGuide | NarrowGuide | None:
        """A guide for a model whose card asks for one; only constrained calls can follow it."""
        if not self.card.guided:
            return None
        if self.tools_of_skill:
            return NarrowGuide(self._tools_for_skill(), has_looked=self.has_looked)
        return SmallModelGuide([tool.name for tool in self.tools], self.surroundings)

    def _tools_for_skill(self) -> frozenset[str]:
        """Where the skill brought what there is to see, a small model would look on and never answer."""
        if not self.has_looked:
            return self.tools_of_skill
        changing = (tool.name for tool in self.tools if tool.access == "write")
        return self.tools_of_skill.intersection(changing)

    @property
    def reply_tokens(self) -> int:
        return min(self.settings.limits.reply_tokens, self.card.max_reply_tokens or 1_000_000)

    def _shared_limits(self, spent: StepStats, steps: int) -> SharedLimits:
        limits = self.settings.limits
        most_steps = self.task.max_steps or limits.max_steps
        return SharedLimits(
            most_steps,
            limits.max_tokens,
            calls=self.calls,
            steps_before=steps,
            tokens_before=spent.decoded_tokens,
        )

    def _guards(
        self, guide: SmallModelGuide | NarrowGuide | None, spent: StepStats, steps: int
    ) -> list[Guard]:
        limits = self.settings.limits
        guards: list[Guard] = [
            StepLimit(self.task.max_steps or limits.max_steps, steps),
            self.calls,
            self.deadline,
            TokenLimit(limits.max_tokens, spent.decoded_tokens),
            RepetitionGuard(),
        ]
        if self.count > 1:
            more_files = max(0, len(self.surroundings.named_targets()) - 1)
            solved = guide.is_solved if guide else lambda: False
            guards.append(AttemptLimit(self.card.attempt_steps + more_files, solved))
        return guards

    def restore(self) -> Sequence[str]:
        restored = [str(path) for path in self.ledger.roll_back()]
        for tool in self.tools:
            start_over = getattr(tool, "start_over", None)
            if start_over is not None:
                start_over()
        for path in self.shown:  # the next attempt begins with the same first message
            self.ledger.record(path)
        return restored


def tool_environment(key_variables: Sequence[str] = ()) -> dict[str, str]:
    """The environment of commands that the model runs: the person's, without keys of model servers.

    Python writes no bytecode: a module that is changed twice within a second, to the same size, would be
    taken for the old one, and a repository without ignore rules would fill up with it.
    """
    kept = {
        name: value for name, value in os.environ.items() if not _is_key(name) and name not in key_variables
    }
    return {"PYTHONDONTWRITEBYTECODE": "1", **kept}


def _is_key(name: str) -> bool:
    return name.startswith("AGENT_") or name.endswith(("_API_KEY", "_TOKEN", "_SECRET", "_PASSWORD"))
