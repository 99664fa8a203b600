"""A session that goes on knows how large its conversation is, whatever its last turn came to."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agent.app.chat.sizes import sizes_in
from agent.core.events import CompactionFinished, StepFinished, StepStarted, to_record
from agent.core.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from agent.core.stats import StepStats
from agent.session.transcript import history_record, message_record
from tests.app.talk import extends, messages_of, talking
from tests.conftest import StartServer

BEGUN: tuple[Message, ...] = (SystemMessage("Be brief."), UserMessage("Look."))
LOOKED: tuple[Message, ...] = (AssistantMessage("I look."), ToolMessage("c", "read", "x" * 9_000))


def written(*messages: Message) -> list[Mapping[str, Any]]:
    return [message_record(message) for message in messages]


def step(prompt: int, decoded: int, *, counted: bool = True) -> Mapping[str, Any]:
    stats = StepStats(prompt_tokens=prompt, decoded_tokens=decoded, counted=counted)
    return to_record(StepFinished(step=1, stop_reason="stop", stats=stats))


def size_of(records: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    sizes = sizes_in(records)
    return sizes.tokens, sizes.measured


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
    assert size_of(records) == (120, 3)


def test_a_step_that_nobody_counted_leaves_the_count_before_it():
    records = [*written(*BEGUN), step(100, 20), *written(*LOOKED), step(0, 5, counted=False)]
    assert size_of([*records, *written(AssistantMessage("(interrupted)"))]) == (120, 3)
    assert size_of([*written(*BEGUN), step(0, 5, counted=False)]) == (0, 0)


def test_after_a_summary_its_own_size_counts():
    summed_up = (*BEGUN, UserMessage("(summed up)"))
    records = [*written(*BEGUN), step(100, 20), *written(*LOOKED), history_record(summed_up, "compaction")]
    assert size_of([*records, to_record(CompactionFinished(before=9_000, after=70))]) == (70, 3)


def test_counts_of_messages_that_were_replaced_or_taken_back_hold_no_more():
    second = (UserMessage("And b?"), AssistantMessage("As a."))
    records = [
        *written(*BEGUN),
        step(100, 20),
        *written(LOOKED[0], second[0]),
        step(130, 9),
        *written(second[1]),
    ]
    assert size_of(records) == (139, 5)
    assert size_of([*records, history_record([*BEGUN, LOOKED[0]], "went back")]) == (120, 3)
    assert size_of([*records, history_record([UserMessage("new")], "another beginning")]) == (0, 0)


async def test_a_request_that_was_never_answered_is_said_to_be_left_behind_when_a_session_goes_on(
    scripted_server: StartServer, work: Path
):
    server = scripted_server("Hello.", "", "", "", "Here I am.")
    async with talking(work, server) as talk:
        await talk.turn("Hello")
        assert (await talk.turn("Say something")).reason == "gave_up"
    async with talking(work, server, resume="last") as talk:
        await talk.turn("And now?")
        assert [one.cause for one in talk.of("prefix_broken")] == [
            "the last request has no reply in the conversation"
        ]
    requests = messages_of(server)
    assert not extends(requests[3], requests[4])


def test_what_the_last_request_held_is_known_until_the_conversation_is_another_one():
    begun = [*written(*BEGUN), to_record(StepStarted(step=1))]
    assert sizes_in(begun).requested == 2
    assert sizes_in([*begun, step(100, 20), *written(*LOOKED)]).requested == 2
    assert sizes_in([*begun, history_record(BEGUN[:1], "went back")]).requested == 0
    refused = to_record(StepFinished(step=1, stop_reason="overflow", stats=StepStats()))
    assert sizes_in([*begun, refused]).requested == 0
