"""A measurement inside of a session."""

import asyncio
from pathlib import Path

import pytest

from agent.app.services.session_bench import request_of
from agent.core.errors import UsageError
from tests.app.talk import talking
from tests.conftest import StartServer


async def test_each_prompt_is_measured_and_the_table_closes_the_card(
    scripted_server: StartServer, work: Path
):
    server = scripted_server(*["def add(a, b):\n    return a + b"] * 4)
    async with talking(work, server) as talk:
        run = await talk.session.command("bench", {"options": "--limit 3 --max-tokens 32"})
        finished = await talk.until("tool_finished")
        output = "".join(event.text for event in talk.of("tool_output"))
    assert run.outcome == "ok"
    assert finished.text == run.text
    header, *rows = run.text.splitlines()
    assert header.split() == ["prompt", "tok/s", "prefill", "accepted", "a", "pass", "seconds"]
    assert rows[3].startswith("overall")
    assert "warming up\n1/3 " in output
    assert output.count(" tok/s") == 2, "the last figure is in the table"
    assert [chat.body["max_tokens"] for chat in server.chats] == [16, 32, 32, 32]
    assert Path(run.text.partition("report: ")[2].splitlines()[0]).is_file()


async def test_a_message_waits_for_the_measurement_and_the_conversation_goes_on(
    scripted_server: StartServer, work: Path
):
    server = scripted_server("Hello.", "warm", "measured", "And on.")
    async with talking(work, server) as talk:
        await talk.turn("hi")
        measuring = asyncio.create_task(talk.session.command("bench", {"options": "--limit 1"}))
        await talk.until("tool_started")
        await talk.turn("more")
        run = await measuring
    assert "The next message may read the conversation anew" in run.text
    assert [one["content"] for one in server.chats[-1].body["messages"]][-2:] == ["Hello.", "more"]
    kinds = talk.kinds("tool_finished", "turn_finished")
    assert kinds == ["turn_finished", "tool_finished", "turn_finished"]


async def test_an_interrupt_keeps_what_was_measured(scripted_server: StartServer, work: Path):
    server = scripted_server("warm", "measured", {"text": "slow", "fault": "pings"})
    async with talking(work, server) as talk:
        measuring = asyncio.create_task(talk.session.command("bench", {}))
        await asyncio.to_thread(server.wait_for_chats, 3)
        talk.session.cancel()
        run = await measuring
    assert run.outcome == "cancelled"
    assert len(run.text.splitlines()[1].split()) == 6
    assert [event.outcome for event in talk.of("tool_finished")] == ["cancelled"]


async def test_a_server_that_fails_is_named(scripted_server: StartServer, work: Path):
    server = scripted_server(*[{"fault": "http_500"}] * 9)
    async with talking(work, server) as talk:
        run = await talk.session.command("bench", {})
    assert run.outcome == "error"
    assert "failed" in run.text


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ("--runs", "--runs needs a number"),
        ("--runs many", "--runs needs a number"),
        ("--limit 0", "--limit needs a number"),
        ("--nosuch 1", "no option --nosuch"),
        ("fast", "no option fast"),
        ("--suite 'x", "cannot be read"),
    ],
)
def test_wrong_options_are_named(options: str, wrong: str):
    with pytest.raises(UsageError, match=wrong):
        request_of(options)


def test_options_may_be_written_with_an_equals_sign():
    request = request_of("--runs=2 --suite quality")
    assert (request.runs, request.suites, request.max_tokens) == (2, ("quality",), 256)
