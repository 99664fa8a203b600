"""What a server lost of a prompt that it had is told once for each cause."""

import pytest

from agent.core.events import (
    AssistantReplied,
    Event,
    PrefixBroken,
    Retry,
    StepFinished,
    TurnFinished,
    UserMessageAdded,
)
from agent.core.reuse import ReuseWatch, ServerMemory
from agent.core.stats import StepStats

THOUGHT = AssistantReplied(text="Yes.", reasoning="Let me see.")
ASKED = UserMessageAdded(text="And now?")
FIRST = 1_000


def step(cached: int, new: int, *, counted: bool = True, seconds: float = 0.0) -> StepFinished:
    stats = StepStats(
        cached_tokens=cached, prompt_tokens=new, decoded_tokens=50, counted=counted, prompt_seconds=seconds
    )
    return StepFinished(step=1, stop_reason="stop", stats=stats)


def told(events: list[Event], server: ServerMemory | None = None) -> list[str]:
    watch = ReuseWatch(look=lambda: server or ServerMemory())
    found = [watch.observe(event) for event in events]
    return [notice.text for notice in found if notice is not None]


def test_session_whose_prompts_are_kept_is_not_talked_about():
    assert told([step(0, FIRST), step(1_045, 40), step(1_130, 500)]) == []


def test_first_prompt_of_a_session_owes_nothing():
    assert told([step(0, 5_000)]) == []


def test_some_tokens_of_a_reply_may_be_cut_differently():
    assert told([step(0, FIRST), step(1_000, 100)]) == []


@pytest.mark.parametrize(
    "between",
    [
        PrefixBroken(cause="compaction"),
        Retry(cause="the connection was lost", attempt=1),
        TurnFinished(reason="cancelled", answer="", detail="", steps=1, stats=StepStats()),
        step(0, 0),
        step(500, 500, counted=False),
    ],
)
def test_what_was_broken_here_is_not_put_on_the_server(between: Event):
    assert told([step(0, FIRST), between, step(0, 1_100)]) == []


@pytest.mark.parametrize(
    ("between", "again", "server", "words"),
    [
        ([THOUGHT, ASKED], step(900, 200), ServerMemory(), "leaves out its earlier thoughts"),
        ([THOUGHT, ASKED], step(0, 1_100), ServerMemory(memory="window"), "leaves out its earlier thoughts"),
        ([], step(0, 1_100), ServerMemory(memory="window"), "no checkpoint nearby"),
        ([], step(512, 588), ServerMemory(memory="recurrent"), "no checkpoint nearby"),
        ([], step(12, 1_088), ServerMemory(memory="whole", slots=1, cache_ram_mib=0), "--cache-ram 0"),
        ([], step(12, 1_088), ServerMemory(memory="whole", slots=2, cache_ram_mib=1_024), "had the slot"),
        ([THOUGHT], step(12, 1_088), ServerMemory(slots=1), "had the slot"),
        ([], step(700, 400), ServerMemory(slots=1), "does not say why"),
        ([], step(0, 1_100), ServerMemory(), "does not say why"),
    ],
)
def test_loss_has_its_cause(between: list[Event], again: StepFinished, server: ServerMemory, words: str):
    [text] = told([step(0, FIRST), *between, again], server)
    assert words in text
    assert f"{FIRST + 50 - again.stats.cached_tokens} of {FIRST + 50} tokens" in text


def test_each_cause_is_told_once():
    lost = [step(700, 1_000), step(900, 3_000)]
    assert len(told([step(0, FIRST), *lost, THOUGHT, ASKED, step(500, 4_000)])) == 2


def test_time_that_it_cost_is_told_where_there_was_some():
    [text] = told([step(0, FIRST), step(0, 1_100, seconds=12.3)])
    assert "were read again, 12 s:" in text


def test_server_is_looked_at_only_where_something_was_lost():
    def look() -> ServerMemory:
        raise AssertionError("there is nothing to explain")

    watch = ReuseWatch(look=look)
    assert [watch.observe(event) for event in (step(0, FIRST), step(1_050, 20))] == [None, None]


def test_another_server_has_nothing_to_lose():
    watch = ReuseWatch()
    watch.observe(step(0, FIRST))
    watch.moved(ServerMemory)
    assert watch.observe(step(0, 1_100)) is None
