"""Questions for permission: what an editor is shown, and what its answer means."""

from pathlib import Path

from acp.schema import (
    AllowedOutcome,
    PermissionOption,
    RequestPermissionResponse,
    ToolCallUpdate,
)

from agent.acp import cards
from agent.core.events import ApprovalRequest
from agent.core.handle import Answer
from agent.core.outside_text import one_line

_LONGEST_RULE = 100


def options_for(request: ApprovalRequest) -> list[PermissionOption]:
    """Yes, yes for all calls that our rule covers, and no."""
    options = [PermissionOption(option_id="once", name="Allow once", kind="allow_once")]
    if request.suggested_rule:
        rule = one_line(request.suggested_rule, _LONGEST_RULE)
        options += [
            PermissionOption(option_id="session", name=f"Allow {rule} in this session", kind="allow_always"),
            PermissionOption(option_id="always", name=f"Always allow {rule}", kind="allow_always"),
        ]
    return [*options, PermissionOption(option_id="deny", name="Reject", kind="reject_once")]


def card_for(request: ApprovalRequest, card_id: str, workspace: Path) -> ToolCallUpdate:
    """The call that is asked about, with its parsed commands or its diff.

    For editors that judge calls themselves `_meta.agent` has the commands one by one: as the arguments have
    them they are a line of a shell's.
    """
    places = cards.changed_places(request.diffs, workspace)
    return ToolCallUpdate(
        tool_call_id=card_id,
        title=cards.title_of(request.tool, request.arguments),
        kind=cards.kind_of(request.tool),
        status="pending",
        content=cards.question_content(request, workspace),
        locations=places or cards.locations_of(request.arguments, workspace),
        raw_input=dict(request.arguments),
        field_meta={"agent": {"tool": request.tool, "commands": list(request.commands)}},
    )


def answer_of(response: RequestPermissionResponse, request: ApprovalRequest) -> Answer:
    """A dialogue that was closed without a choice is a no."""
    outcome = response.outcome
    chosen = outcome.option_id if isinstance(outcome, AllowedOutcome) else "deny"
    if chosen == "once":
        return Answer(kind="once")
    if chosen == "session" and request.suggested_rule:
        return Answer(kind="session", rule=request.suggested_rule)
    if chosen == "always" and request.suggested_rule:
        return Answer(kind="always", rule=request.suggested_rule)
    return Answer(kind="deny")
