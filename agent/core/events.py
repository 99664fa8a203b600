"""What flows from the turn loop to every front: terminal, headless output, editors and the session file.

All events are frozen and carry a literal `type`, so that one schema serves them all. A slow consumer may
merge or drop the `*_delta`, `prefill` and `tool_output` events, and no others. Each `tool_started` has
exactly one `tool_finished`, and `turn_finished` is always the last event of a turn.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from agent.core.questions import QuestionField
from agent.core.stats import StepStats
from agent.core.tool import FileDiff

TurnReason = Literal[
    "done",  # the model finished, and the check passed if there is one
    "check_failed",  # the model finished but could not make the check pass
    "gave_up",  # the model produced no usable answer or went in circles
    "attempt_limit",  # the steps of one attempt are used up, others may follow
    "step_limit",
    "tool_call_limit",
    "time_limit",
    "token_limit",
    "context_full",
    "server_failed",
    "cancelled",
]

OWN_CALL = "user-"
"""How the ids of calls begin that a person made and no model asked for."""

ASIDE_TOOL = "btw"
"""The name of the call that a question beside the work is told as."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStarted:
    session_id: str
    workspace: str
    profile: str
    model: str
    context_tokens: int
    tool_protocol: str
    type: Literal["session_started"] = "session_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """Progress of bringing the server up. `elapsed_seconds` counts from the request to start."""

    state: str
    detail: str = ""
    elapsed_seconds: float = 0.0
    type: Literal["server_state"] = "server_state"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted:
    """`started` is the time, in seconds since 1970; 0 where nobody wrote it down."""

    attempt: int
    started: float = 0.0
    type: Literal["turn_started"] = "turn_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessageAdded:
    """`text` as it was typed; the model may be told more, such as the files that it mentions.

    `is_note` says that the session itself speaks, as after a command of the person's.
    """

    text: str
    is_note: bool = False
    type: Literal["user_message"] = "user_message"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted:
    step: int
    type: Literal["step_started"] = "step_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefill:
    """Prompt evaluation as the server reports it, in tokens; `cached` of `total` cost nothing."""

    total: int
    cached: int
    processed: int
    type: Literal["prefill"] = "prefill"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    text: str
    type: Literal["text_delta"] = "text_delta"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningDelta:
    text: str
    type: Literal["reasoning_delta"] = "reasoning_delta"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallDelta:
    """Raw text of a call that is still being generated."""

    text: str
    type: Literal["tool_call_delta"] = "tool_call_delta"


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantReplied:
    """The whole reply of one step, exactly as generated."""

    text: str
    reasoning: str
    type: Literal["assistant_message"] = "assistant_message"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFinished:
    step: int
    stop_reason: str
    stats: StepStats
    type: Literal["step_finished"] = "step_finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted:
    call_id: str
    tool: str
    arguments: Mapping[str, Any]
    type: Literal["tool_started"] = "tool_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    call_id: str
    text: str
    type: Literal["tool_output"] = "tool_output"


ToolOutcome = Literal["ok", "error", "denied", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinished:
    """`decision` says why the call was allowed or denied, `seconds` is the time of the tool alone.

    `refused` is what was denied to a sub-agent within the call.
    """

    call_id: str
    tool: str
    outcome: ToolOutcome
    text: str
    seconds: float
    decision: str = ""
    diffs: tuple[FileDiff, ...] = ()
    refused: tuple[str, ...] = ()
    type: Literal["tool_finished"] = "tool_finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckFinished:
    command: str
    passed: bool
    text: str
    seconds: float
    type: Literal["check_finished"] = "check_finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkAccess:
    """A command in the sandbox wanted to reach a host; `reason` says why it may, or what would allow it."""

    host: str
    port: int
    allowed: bool
    reason: str
    type: Literal["network_access"] = "network_access"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixBroken:
    """The next request does not extend the previous one, and why."""

    cause: str
    type: Literal["prefix_broken"] = "prefix_broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    cause: str
    attempt: int
    type: Literal["retry"] = "retry"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    text: str
    level: Literal["info", "warning", "error"] = "info"
    type: Literal["notice"] = "notice"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """A call waits for a person. `commands` is what a shell line really starts, taken apart.

    `suggested_rule` would allow calls like this one, empty where no rule would.
    """

    request_id: str
    call_id: str
    tool: str
    arguments: Mapping[str, Any]
    reason: str
    suggested_rule: str = ""
    commands: tuple[str, ...] = ()
    diffs: tuple[FileDiff, ...] = ()
    type: Literal["approval_request"] = "approval_request"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalSettled:
    """A request is no longer open: answered, or withdrawn because the turn was cancelled."""

    request_id: str
    outcome: Literal["once", "session", "always", "deny", "withdrawn"]
    reason: str = ""
    type: Literal["approval_settled"] = "approval_settled"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAsked:
    """Somebody else's program, an MCP server say, asks the person. See `agent.core.questions`."""

    question_id: str
    source: str
    text: str
    fields: tuple[QuestionField, ...] = ()
    url: str = ""
    type: Literal["question_asked"] = "question_asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionSettled:
    """A question is no longer open: replied to, or withdrawn because nobody waits for it any more."""

    question_id: str
    outcome: Literal["accept", "decline", "cancel", "withdrawn"]
    type: Literal["question_settled"] = "question_settled"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueChanged:
    """Texts that wait: for the running turn (`steering`) and for turns after it (`follow_ups`)."""

    steering: tuple[str, ...] = ()
    follow_ups: tuple[str, ...] = ()
    type: Literal["queue_changed"] = "queue_changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeChanged:
    mode: str
    type: Literal["mode_changed"] = "mode_changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextStatus:
    """Tokens in the conversation's context, of the real window of its slot (0 = unknown)."""

    used: int
    window: int
    type: Literal["context_status"] = "context_status"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewound:
    """The person went back to the moment before turn `to_turn`.

    With `chat` that turn and all after it are no longer in the conversation. `restored` and `deleted` are
    files that are as they were then; `left` are others, each with the reason why it stayed as it is.
    """

    to_turn: int
    what: Literal["chat", "files", "both"]
    restored: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    type: Literal["rewound"] = "rewound"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionStarted:
    """The model is asked to sum up; `before` are the tokens of the context. `automatic`: nobody asked."""

    before: int
    automatic: bool = False
    type: Literal["compaction_started"] = "compaction_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionFinished:
    """`after` is an estimate in tokens; equal to `before` where nothing was changed, `detail` says why then.

    `summary` is what the model goes on with in place of the older messages: our record, then the model's own
    words. `opening_kept` says that the first message still stands before it. `stats` is what the request
    for it cost.
    """

    before: int
    after: int
    summary: str = ""
    detail: str = ""
    opening_kept: bool = True
    stats: StepStats = field(default_factory=StepStats)
    type: Literal["compaction_finished"] = "compaction_finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFinished:
    """`answer` is the model's closing text, `detail` one line for people on why it ended."""

    reason: TurnReason
    answer: str
    detail: str
    steps: int
    stats: StepStats
    type: Literal["turn_finished"] = "turn_finished"


Event = (
    SessionStarted
    | ServerState
    | TurnStarted
    | UserMessageAdded
    | StepStarted
    | Prefill
    | TextDelta
    | ReasoningDelta
    | ToolCallDelta
    | AssistantReplied
    | StepFinished
    | ToolStarted
    | ToolOutput
    | ToolFinished
    | CheckFinished
    | NetworkAccess
    | PrefixBroken
    | Retry
    | Notice
    | ApprovalRequest
    | ApprovalSettled
    | QuestionAsked
    | QuestionSettled
    | QueueChanged
    | ModeChanged
    | ContextStatus
    | Rewound
    | CompactionStarted
    | CompactionFinished
    | TurnFinished
)


def to_record(event: Event) -> dict[str, Any]:
    """The event as plain JSON-ready data, with its type first."""
    record = asdict(event)
    return {"type": record.pop("type"), **record}
