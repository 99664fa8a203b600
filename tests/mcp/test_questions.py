"""What a server asks back: the person, the model, the folder. Against a real process."""

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import pytest

from agent.core.errors import AgentError
from agent.core.questions import Question, QuestionField, Reply
from agent.mcp.adapter import as_result
from agent.mcp.pool import Pool
from tests.mcp.conftest import PoolOf, fake_server
from tests.patience import PATIENCE_SECONDS, limits


class Person:
    """Answers every question with `reply`; without one, never."""

    def __init__(self, reply: Reply | None) -> None:
        self.reply = reply
        self.asked: list[Question] = []
        self.news = asyncio.Event()
        self.taken_back = 0

    async def ask(self, question: Question) -> Reply:
        self.asked.append(question)
        self.news.set()
        try:
            if self.reply is None:
                await asyncio.Event().wait()
            return self.reply or Reply("cancel")
        except asyncio.CancelledError:
            self.taken_back += 1
            raise


async def told(pool: Pool, tool: str) -> Any:
    result = await pool.call("one", tool, {}, lambda _: None)
    return json.loads(as_result("one", result).model_text.partition("\n")[2])


async def test_what_a_person_leaves_alone_has_the_default_of_the_form(pool_of: PoolOf):
    person = Person(Reply("accept", {"age": 7}))
    pool = pool_of(fake_server("one", "acts"), ask=person.ask)
    content = {"name": "Ada", "age": 7, "share": 0.5, "sure": True, "colour": "green"}
    assert await told(pool, "ask") == {"action": "accept", "content": content}
    [question] = person.asked
    assert (question.source, question.text) == ("one", "Who are you?")
    assert [(field.name, field.kind) for field in question.fields] == [
        ("name", "text"),
        ("age", "integer"),
        ("share", "number"),
        ("sure", "yes-no"),
        ("colour", "choice"),
        ("note", "text"),
    ]
    assert question.fields[0] == QuestionField(
        name="name", kind="text", title="Your name", required=True, default="Ada"
    )


async def test_values_that_do_not_fit_the_form_are_never_sent(pool_of: PoolOf):
    pool = pool_of(fake_server("one", "acts"), ask=Person(Reply("accept", {"age": -1})).ask)
    assert await told(pool, "ask") == {"action": "cancel"}


async def test_a_person_may_decline(pool_of: PoolOf):
    pool = pool_of(fake_server("one", "acts"), ask=Person(Reply("decline")).ask)
    assert await told(pool, "ask") == {"action": "decline"}


async def test_without_a_person_every_question_is_declined(pool_of: PoolOf):
    assert await told(pool_of(fake_server("one", "acts")), "ask") == {"action": "decline"}


async def test_an_address_to_open_is_shown_and_not_opened(pool_of: PoolOf):
    person = Person(Reply("accept"))
    assert await told(pool_of(fake_server("one", "acts"), ask=person.ask), "ask-url") == {"action": "accept"}
    assert person.asked[0].url == "https://example.org/sign"


async def test_a_call_that_wants_an_address_opened_first_is_made_again_afterwards(pool_of: PoolOf):
    person = Person(Reply("accept"))
    result = await pool_of(fake_server("one", "acts"), ask=person.ask).call("one", "visit-first", {}, print)
    assert as_result("one", result).model_text.endswith("visit-first: done")
    assert [question.url for question in person.asked] == ["https://example.org/sign"]


@pytest.mark.parametrize(("tool", "reply"), [("visit-first", "decline"), ("visit-nonsense", "accept")])
async def test_a_call_whose_address_was_not_opened_is_refused(
    pool_of: PoolOf, tool: str, reply: Literal["accept", "decline"]
):
    with pytest.raises(AgentError, match="one refuses: sign first"):
        await pool_of(fake_server("one", "acts"), ask=Person(Reply(reply)).ask).call("one", tool, {}, print)


async def test_a_form_that_cannot_be_shown_is_refused_by_name(pool_of: PoolOf):
    person = Person(Reply("accept"))
    answer = await told(pool_of(fake_server("one", "acts"), ask=person.ask), "ask-nonsense")
    assert answer["message"] == "this form cannot be shown"
    assert not person.asked


async def test_a_server_that_wants_the_model_is_refused_clearly(pool_of: PoolOf):
    assert (await told(pool_of(fake_server("one", "acts")), "sample"))["message"] == "Sampling not supported"


async def test_the_folder_of_the_session_is_the_only_root(pool_of: PoolOf, tmp_path: Path):
    [root] = (await told(pool_of(fake_server("one", "acts")), "roots"))["roots"]
    assert root == {"name": "workspace", "uri": tmp_path.resolve().as_uri()}


async def test_time_does_not_count_while_a_person_thinks(pool_of: PoolOf):
    for seconds in limits(0.4):
        answer: Any = None
        thought = asyncio.Event()
        asyncio.get_running_loop().call_later(2 * seconds, thought.set)

        async def slow(question: Question, thought: asyncio.Event = thought) -> Reply:
            await thought.wait()
            return Reply("decline")

        pool = pool_of(fake_server("one", "acts", call_seconds=seconds), ask=slow)
        with suppress(AgentError):  # a machine that is held up may need too long before and after it
            await pool.list_tools(["one"])
            answer = await told(pool, "ask")
            break
    assert answer == {"action": "decline"}


async def test_cancelling_a_call_takes_its_question_back_and_tells_the_server(pool_of: PoolOf):
    person = Person(None)
    pool = pool_of(fake_server("one", "acts"), ask=person.ask)
    asking = asyncio.ensure_future(told(pool, "ask"))
    async with asyncio.timeout(PATIENCE_SECONDS):
        await person.news.wait()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert person.taken_back == 1
    assert await told(pool, "cancelled") == 1


async def test_cancelling_a_call_that_hangs_is_told_to_the_server(pool_of: PoolOf):
    pool = pool_of(fake_server("one", "acts"))
    await pool.list_tools(["one"])
    begun = asyncio.Event()
    hanging = asyncio.ensure_future(pool.call("one", "hang", {}, lambda _: begun.set()))
    async with asyncio.timeout(PATIENCE_SECONDS):
        await begun.wait()
    hanging.cancel()
    await asyncio.gather(hanging, return_exceptions=True)
    assert await told(pool, "cancelled") == 1
