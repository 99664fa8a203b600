"""A run that goes on with an earlier session knows what its last request held."""

from collections.abc import Mapping
from typing import Any

from agent.app.run.past import past_of
from agent.app.turns.prompt_head import PromptHead
from agent.core.events import StepStarted, to_record
from agent.core.messages import AssistantMessage, Message, SystemMessage, UserMessage
from agent.session.transcript import message_record

BRIEF = SystemMessage("Be brief.")
ASKED: tuple[Message, ...] = (BRIEF, UserMessage("Look."))


def recorded(*behind: Message) -> tuple[Mapping[str, Any], ...]:
    asked = [*map(message_record, ASKED), to_record(StepStarted(step=1))]
    return (*asked, *map(message_record, behind))


def lacks_reply(system: SystemMessage, *behind: Message) -> bool:
    conversation, _ = past_of(recorded(*behind)).begin(system, PromptHead(), lambda _: None)
    return conversation.lacks_reply


def test_a_last_request_without_a_reply_is_known_to_a_run_that_goes_on():
    assert lacks_reply(BRIEF)
    assert not lacks_reply(BRIEF, AssistantMessage("Seen."))


def test_a_run_that_begins_in_another_way_has_no_request_to_extend():
    assert not lacks_reply(SystemMessage("Be long."))
