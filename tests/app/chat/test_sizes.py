"""A session that goes on knows how large its conversation is, whatever its last turn came to."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.app.chat.sizes import size_in
from agent.core.events import CompactionFinished, StepFinished, to_record
from agent.core.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from agent.core.stats import StepStats
from agent.session.transcript import history_record, message_record
from tests.app.talk import talking
from tests.conftest import StartServer

BEGUN: tuple[Message, ...] = (SystemMessage("Be brief."), UserMessage("Look."))
LOOKED: tuple[Message, ...] = (AssistantMessage("I look."), ToolMessage("c", "read", "x" * 9_000))


def written(*messages: Message) -> list[Mapping[str, Any]]:
    return [message_record(message) for message in messages]


def step(prompt: int, decoded: int, *, counted: bool = True) -> Mapping[str, Any]:
    stats = StepStats(prompt_tokens=prompt, decoded_tokens=decoded, counted=counted)
    return to_record(StepFinished(step=1, stop_reason="stop", stats=stats))


async def test_an_interrupted_reply_does_not_make_a_long_conversation_look_short_when_it_goes_on(
    scripted_server: StartServer, work: Path
):
    story = " ".join(f"w{number}" for number in range(500))
    server = scripted_server(story, {"fault": "pings", "text": "I begin to"}, "Bye.")
    async with talking(work, server) as talk:
        await talk.turn("Tell me")
        before, told = talk.session.facts.used_tokens, len(talk.of("text_delta"))
        talk.session.prompt("Go on")
        await talk.until("text_delta", told + 1)
        talk.session.cancel()
        await talk.until("turn_finished", 2)
    async with talking(work, server, resume="last") as talk:
        assert talk.session.facts.used_tokens == before
        await talk.turn("And now?")
        assert talk.session.facts.used_tokens > before


def test_results_that_came_after_the_last_count_are_not_among_it():
    records = [*written(*BEGUN), step(100, 20), *written(*LOOKED)]
    assert size_in(records) == (120, 3)


def test_a_step_that_nobody_counted_leaves_the_count_before_it():
    records = [*written(*BEGUN), step(100, 20), *written(*LOOKED), step(0, 5, counted=False)]
    assert size_in([*records, *written(AssistantMessage("(interrupted)"))]) == (120, 3)
    assert size_in([*written(*BEGUN), step(0, 5, counted=False)]) == (0, 0)


def test_after_a_summary_its_own_size_counts():
    summed_up = (*BEGUN, UserMessage("(summed up)"))
    records = [*written(*BEGUN), step(100, 20), *written(*LOOKED), history_record(summed_up, "compaction")]
    assert size_in([*records, to_record(CompactionFinished(before=9_000, after=70))]) == (70, 3)


def test_counts_of_messages_that_were_replaced_or_taken_back_hold_no_more():
    second = (UserMessage("And b?"), AssistantMessage("As a."))
    records = [
        *written(*BEGUN),
        step(100, 20),
        *written(LOOKED[0], second[0]),
        step(130, 9),
        *written(second[1]),
    ]
    assert size_in(records) == (139, 5)
    assert size_in([*records, history_record([*BEGUN, LOOKED[0]], "went back")]) == (120, 3)
    assert size_in([*records, history_record([UserMessage("new")], "another beginning")]) == (0, 0)
