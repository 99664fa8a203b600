"""Events of a session as updates of the Agent Client Protocol. The only place where one becomes the other."""

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from acp.helpers import (
    SessionUpdate,
    start_tool_call,
    text_block,
    tool_content,
    update_agent_message_text,
    update_agent_thought_text,
    update_current_mode,
    update_tool_call,
    update_user_message_text,
)
from acp.schema import StopReason, ToolCallStatus, UsageUpdate

from agent.acp import cards
from agent.acp.waiting import Waiting
from agent.core.events import (
    ApprovalRequest,
    ApprovalSettled,
    AssistantReplied,
    CompactionFinished,
    CompactionStarted,
    ContextStatus,
    Event,
    ModeChanged,
    Notice,
    Prefill,
    ReasoningDelta,
    Retry,
    ServerState,
    StepFinished,
    StepStarted,
    TextDelta,
    ToolCallDelta,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnFinished,
    TurnReason,
    TurnStarted,
    UserMessageAdded,
)
from agent.core.outside_text import one_line

Update = SessionUpdate | UsageUpdate

STOP_REASONS: dict[TurnReason, StopReason] = {
    "cancelled": "cancelled",
    "token_limit": "max_tokens",
    "context_full": "max_tokens",
    "attempt_limit": "max_turn_requests",
    "step_limit": "max_turn_requests",
    "tool_call_limit": "max_turn_requests",
    "time_limit": "max_turn_requests",
}
"""How a turn ended, in the words of the protocol; what is not here is `end_turn`."""

_END_A_WAIT = (TextDelta, ReasoningDelta, StepFinished, ToolStarted, TurnFinished)
_SECONDS_BETWEEN_OUTPUT = 0.25
_FINISH = "finish"
# With constrained calls the whole reply is one call, which has a card of its own.
_IS_CALL = re.compile(r'\s*\{\s*"tool"\s*:')
_SETTLED: dict[str, ToolCallStatus] = {"deny": "failed", "withdrawn": "failed"}


class Translator:
    """Turns the events of one session into updates, one after the other.

    `last_error` is the last error that the session told of, with its hint, on one line.
    """

    def __init__(self, workspace: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.last_error = ""
        self._workspace = workspace
        self._clock = clock
        self._in_turn = False
        self._early: list[Notice] = []
        self._server = ServerState(state="")
        self._server_card = ""
        self._made = 0
        self._compaction = ""
        self._said = ""
        self._needs_gap = False
        self._output: dict[str, str] = {}
        self._told_at: dict[str, float] = {}
        self._asked: dict[str, str] = {}
        self._open: dict[str, None] = {}
        self._waiting = Waiting(clock, self._next_id)

    def live(self, event: Event) -> list[Update]:
        """What an editor is told of an event that happens now."""
        if isinstance(event, Prefill | ToolCallDelta):
            return list(self._waiting.note(event))
        ended = self._waiting.end() if isinstance(event, _END_A_WAIT) else []
        return [*ended, *self._shown(event)]

    def _shown(self, event: Event) -> list[Update]:
        match event:
            case TextDelta():
                return self._text(event.text)
            case ReasoningDelta():
                return [update_agent_thought_text(event.text)]
            case StepStarted():
                self._waiting.begin()
                self._needs_gap = bool(self._said)
                return []
            case ToolStarted() | ToolOutput() | ToolFinished():
                return self._tool(event)
            case TurnStarted():
                return self._turn_started()
            case TurnFinished():
                return self._turn_finished(event)
        return self._aside(event)

    def past(self, event: Event) -> list[Update]:
        """What an editor is told of an event of an earlier time, when a session is loaded."""
        match event:
            case UserMessageAdded():
                return [] if event.is_note else [update_user_message_text(event.text)]
            case AssistantReplied():
                thought = [update_agent_thought_text(event.reasoning)] if event.reasoning.strip() else []
                is_call = not event.text.strip() or _IS_CALL.match(event.text)
                self._said = "" if is_call else event.text
                return [*thought, *([] if is_call else [update_agent_message_text(event.text)])]
            case ToolStarted() | ToolFinished():
                return self._tool(event)
            case TurnFinished():
                return self._answer(event)
            case CompactionFinished() if event.summary:
                return self._card("Summed up the conversation", event.summary, "completed")
        return []

    def past_end(self) -> list[Update]:
        """Closes the cards of calls that never ended, because the program was killed."""
        broken_off = [update_tool_call(call_id, status="failed") for call_id in self._open]
        self._open.clear()
        self._said = ""
        return list(broken_off)

    # -- the turn ---------------------------------------------------------------------------------------

    def _turn_started(self) -> list[Update]:
        self._in_turn = True
        self._said, self._needs_gap, self.last_error = "", False, ""
        updates = [update for notice in self._early for update in self._notice(notice)]
        self._early.clear()
        return [*updates, *self._server_update(self._server)]

    def _turn_finished(self, event: TurnFinished) -> list[Update]:
        updates = self._answer(event)
        if event.reason not in ("done", "cancelled", "server_failed"):
            updates += self._card(event.detail or event.reason.replace("_", " "), "", "failed")
        if self._server_card:
            status: ToolCallStatus = "failed" if event.reason == "server_failed" else "completed"
            updates.append(update_tool_call(self._server_card, status=status))
            self._server_card = ""
        self._in_turn = False
        self._output.clear()
        self._told_at.clear()
        return updates

    def _answer(self, event: TurnFinished) -> list[Update]:
        """The closing text, where it came as a call and not as a message."""
        answer = event.answer.strip()
        if not answer or answer == self._said.strip() or _IS_CALL.match(answer):
            return []
        return [update_agent_message_text(f"\n\n{answer}" if self._said else answer)]

    def _text(self, text: str) -> list[Update]:
        if not text:
            return []
        gap = "\n\n" if self._needs_gap else ""
        self._needs_gap = False
        self._said = text if gap or not self._said else self._said + text
        return [update_agent_message_text(gap + text)]

    # -- calls ------------------------------------------------------------------------------------------

    def _tool(self, event: ToolStarted | ToolOutput | ToolFinished) -> list[Update]:
        match event:
            case ToolOutput():
                return self._more_output(event)
            case ToolStarted(tool=tool) | ToolFinished(tool=tool) if tool == _FINISH:
                return []
            case ToolStarted():
                self._said, self._needs_gap = "", False
                self._open[event.call_id] = None
                start = start_tool_call(
                    event.call_id,
                    cards.title_of(event.tool, event.arguments),
                    kind=cards.kind_of(event.tool),
                    status="in_progress",
                    locations=cards.locations_of(event.arguments, self._workspace),
                    raw_input=dict(event.arguments),
                )
                return [start]
            case ToolFinished():
                self._open.pop(event.call_id, None)
                self._output.pop(event.call_id, None)
                self._told_at.pop(event.call_id, None)
                places = cards.changed_places(event.diffs, self._workspace)
                finished = update_tool_call(
                    event.call_id,
                    status="completed" if event.outcome == "ok" else "failed",
                    content=cards.finished_content(event, self._workspace),
                    locations=places or None,
                    raw_output={
                        "outcome": event.outcome,
                        "seconds": event.seconds,
                        "decision": event.decision,
                    },
                )
                return [finished]

    def _more_output(self, event: ToolOutput) -> list[Update]:
        """All output so far, because an update replaces what was shown; not with every line therefore."""
        shown = (self._output.get(event.call_id, "") + event.text)[-cards.MOST_CHARACTERS :]
        self._output[event.call_id] = shown
        now = self._clock()
        if now - self._told_at.get(event.call_id, float("-inf")) < _SECONDS_BETWEEN_OUTPUT:
            return []
        self._told_at[event.call_id] = now
        return [update_tool_call(event.call_id, content=cards.text_content(shown))]

    def _asks(self, request: ApprovalRequest) -> list[Update]:
        if request.call_id:
            self._asked[request.request_id] = request.call_id
            return [update_tool_call(request.call_id, status="pending")]
        # A file that a message mentions is asked about too, and is no call of the model's.
        self._asked[request.request_id] = request.request_id
        title = cards.title_of(request.tool, request.arguments)
        kind = cards.kind_of(request.tool)
        return [start_tool_call(request.request_id, title, kind=kind, status="pending")]

    def _settled(self, event: ApprovalSettled) -> list[Update]:
        card = self._asked.pop(event.request_id, "")
        if not card:
            return []
        is_call = card != event.request_id
        status = _SETTLED.get(event.outcome, "in_progress" if is_call else "completed")
        return [update_tool_call(card, status=status)]

    # -- everything else --------------------------------------------------------------------------------

    def _aside(self, event: Event) -> list[Update]:
        match event:
            case ApprovalRequest() | ApprovalSettled():
                return self._asks(event) if isinstance(event, ApprovalRequest) else self._settled(event)
            case ServerState():
                self._server = event
                return self._server_update(event) if self._in_turn else []
            case Notice():
                return self._notice(event)
            case Retry():
                return self._card(f"{event.cause}; asking again ({event.attempt})", "", "completed")
            case ModeChanged():
                return [update_current_mode(event.mode)]
            case ContextStatus() if event.window:
                used = UsageUpdate(session_update="usage_update", used=event.used, size=event.window)
                return [used]
            case CompactionStarted() | CompactionFinished():
                return self._summing_up(event)
        return []

    def _summing_up(self, event: CompactionStarted | CompactionFinished) -> list[Update]:
        match event:
            case CompactionStarted():
                self._compaction = self._next_id("compaction")
                title = f"Summing up {event.before:,} tokens of conversation"
                return [start_tool_call(self._compaction, title, kind="think", status="in_progress")]
            case CompactionFinished() if self._compaction:
                done = event.after != event.before
                said = f"{event.before:,} tokens became about {event.after:,}" if done else event.detail
                text = "\n\n".join(part for part in (said, event.summary) if part)
                content: list[Any] = [tool_content(text_block(text))] if text else []
                return [update_tool_call(self._compaction, status="completed", content=content)]
        return []

    def _notice(self, notice: Notice) -> list[Update]:
        if notice.level == "error":
            # It is about the turn, whose end tells it.
            self.last_error = " ".join(notice.text.replace("\nhint: ", "; ").split())
            return []
        if not self._in_turn:
            self._early.append(notice)
            return []
        first, _, more = notice.text.partition("\n")
        return self._card(first, more, "completed")

    def _server_update(self, event: ServerState) -> list[Update]:
        """A server on its way is a card that fills itself, so that a long start is no silence."""
        is_over = event.state in ("", "ready", "failed", "stopped")
        if is_over and not self._server_card:
            return []
        seconds = f", {event.elapsed_seconds:.0f} s" if event.elapsed_seconds >= 1 else ""
        title = f"Model server: {event.state}{seconds}"
        content: list[Any] = [tool_content(text_block(event.detail))] if event.detail else []
        if not self._server_card:
            self._server_card = self._next_id("server")
            return [
                start_tool_call(self._server_card, title, kind="other", status="in_progress", content=content)
            ]
        if not is_over:
            return [update_tool_call(self._server_card, title=title, content=content)]
        card, self._server_card = self._server_card, ""
        status: ToolCallStatus = "completed" if event.state == "ready" else "failed"
        return [update_tool_call(card, title=title, status=status, content=content)]

    def _card(self, title: str, text: str, status: ToolCallStatus) -> list[Update]:
        content: list[Any] = [tool_content(text_block(text))] if text.strip() else []
        shown = one_line(title, 300)
        return [start_tool_call(self._next_id("note"), shown, kind="other", status=status, content=content)]

    def _next_id(self, kind: str) -> str:
        self._made += 1
        return f"{kind}-{self._made}"
