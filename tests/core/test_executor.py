"""One tool call from its start to the message for the model, whatever goes wrong on the way."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from agent.core.cancel import closing
from agent.core.errors import ServerError
from agent.core.events import ToolFinished, ToolOutput, ToolStarted
from agent.core.executor import GateDecision
from agent.core.messages import ToolMessage
from agent.core.tool import FileDiff, Tool, ToolContext, ToolResult
from tests.core.rig import (
    FakeTool,
    OpenGate,
    collect,
    editing,
    executor_of,
    of_type,
    types,
    waiting,
)
from tests.fakes.scripted_model import call


@pytest.fixture
def cancel() -> asyncio.Event:
    return asyncio.Event()


def finished(items: list[Any]) -> ToolFinished:
    [end] = of_type(items, ToolFinished)
    return end


def message(items: list[Any]) -> ToolMessage:
    assert isinstance(items[-1], ToolMessage)
    return items[-1]


async def test_a_call_starts_runs_and_finishes_before_its_message(cancel: asyncio.Event):
    tool = FakeTool("read", "the text")

    items = await collect(executor_of(tool).execute(call("read", path="a.py"), cancel))

    assert [type(item) for item in items] == [ToolStarted, ToolFinished, ToolMessage]
    assert items[0] == ToolStarted(call_id="c1", tool="read", arguments={"path": "a.py"})
    assert (finished(items).outcome, finished(items).decision) == ("ok", "allowed by a rule")
    assert message(items) == ToolMessage("c1", "read", "the text")
    assert tool.calls[0].path == "a.py"


async def test_output_is_passed_on_before_the_tool_is_done(cancel: asyncio.Event):
    go_on = asyncio.Event()

    async def talk(_: Any, context: ToolContext) -> str:
        context.emit("one")
        await go_on.wait()
        context.emit("two")
        return "said"

    items: list[Any] = []
    async for item in executor_of(FakeTool("talk", talk)).execute(call("talk"), cancel):
        items.append(item)
        if isinstance(item, ToolOutput):
            go_on.set()

    assert [item.text for item in of_type(items, ToolOutput)] == ["one", "two"]
    assert types(items[:-1]) == ["tool_started", "tool_output", "tool_output", "tool_finished"]


async def test_changes_are_reported_with_the_end_of_the_call(cancel: asyncio.Event):
    items = await collect(executor_of(editing()).execute(call("edit"), cancel))
    assert finished(items).diffs == (FileDiff("a.py", "old", "new"),)


async def test_an_unknown_tool_is_answered_with_the_names_of_the_known_ones(cancel: asyncio.Event):
    items = await collect(executor_of(FakeTool("read"), FakeTool("edit")).execute(call("cat"), cancel))
    assert finished(items).outcome == "error"
    assert message(items).text == "There is no tool 'cat'. The tools are: read, edit."
    assert message(items).is_error


async def test_a_model_that_invents_a_name_is_told_those_that_there_are(cancel: asyncio.Event):
    class Wanted(BaseModel):
        path: str
        start: int | None = None

    tool = FakeTool("read")
    tool.params = Wanted
    items = await collect(executor_of(tool).execute(call("read", file_path="a.py"), cancel))
    assert message(items).text == (
        "Wrong arguments for read: path: field required. There is no file_path: read takes path, start."
    )


async def test_wrong_arguments_are_named_and_nothing_is_run(cancel: asyncio.Event):
    tool = FakeTool("read")

    items = await collect(executor_of(tool).execute(call("read", path=["a"], count="many"), cancel))

    assert tool.calls == []
    assert finished(items).outcome == "error"
    assert message(items).text.startswith("Wrong arguments for read: path: input should be a valid string; ")
    assert "count: input should be a valid integer" in message(items).text


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (FileNotFoundError(2, "No such file or directory", "a.py"), "No such file or directory: a.py"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError("the disk is gone"), "the disk is gone"),
        (ServerError("the ledger is lost"), "the ledger is lost"),
        (ZeroDivisionError("division by zero"), "read failed: ZeroDivisionError: division by zero"),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"), "read failed: UnicodeEnc"),
    ],
)
async def test_a_tool_that_raises_becomes_an_error_result(
    cancel: asyncio.Event, error: Exception, words: str
):
    async def fail(*_: Any) -> str:
        raise error

    items = await collect(executor_of(FakeTool("read", fail)).execute(call("read"), cancel))

    assert finished(items).outcome == "error"
    assert message(items).text.startswith(words)
    assert message(items).is_error


async def test_a_result_that_says_it_failed_is_an_error(cancel: asyncio.Event):
    tool = FakeTool("read", ToolResult("there is no a.py", is_error=True))
    items = await collect(executor_of(tool).execute(call("read"), cancel))
    assert finished(items).outcome == "error"
    assert message(items).is_error


async def test_a_long_result_keeps_both_ends_and_names_the_cut(cancel: asyncio.Event):
    tool = FakeTool("read", "A" * 1000 + "middle" + "Z" * 1000)

    items = await collect(executor_of(tool, limit=300).execute(call("read"), cancel))

    text = message(items).text
    assert text.startswith("A" * 200)
    assert text.endswith("Z" * 100)
    assert "\n[… 1706 characters left out …]\n" in text
    assert finished(items).text == text


@pytest.mark.parametrize("limit", [0, -5])
async def test_something_of_a_result_is_shown_even_when_no_room_is_left(cancel: asyncio.Event, limit: int):
    items = await collect(executor_of(FakeTool("read", "x" * 500), limit=limit).execute(call("read"), cancel))
    assert 200 <= len(message(items).text) < 300


async def test_a_result_of_just_the_allowed_length_is_whole(cancel: asyncio.Event):
    items = await collect(executor_of(FakeTool("read", "x" * 300), limit=300).execute(call("read"), cancel))
    assert message(items).text == "x" * 300


async def test_a_denial_tells_the_model_why_and_runs_nothing(cancel: asyncio.Event):
    tool = FakeTool("shell")
    executor = executor_of(tool, gate=OpenGate(shell="it reaches other machines"))

    items = await collect(executor.execute(call("shell"), cancel))

    assert tool.calls == []
    assert finished(items).outcome == "denied"
    assert finished(items).decision == "it reaches other machines"
    assert message(items).text == "Denied: it reaches other machines"


async def test_the_time_of_a_call_leaves_out_the_wait_for_a_person(cancel: asyncio.Event):
    now = [100.0]

    class SlowPerson(OpenGate):
        async def decide(self, tool: Tool, arguments: Mapping[str, Any]) -> GateDecision:
            now[0] += 60
            return await super().decide(tool, arguments)

    async def work(*_: Any) -> str:
        now[0] += 2.5
        return "done"

    executor = executor_of(FakeTool("shell", work), gate=SlowPerson(), clock=lambda: now[0])
    items = await collect(executor.execute(call("shell"), cancel))

    assert finished(items).seconds == 2.5


async def test_a_cancel_stops_the_tool_and_still_finishes_the_call(cancel: asyncio.Event):
    started = asyncio.Event()
    executor = executor_of(waiting(started, on_cancel="cleaned up"))

    collecting = asyncio.ensure_future(collect(executor.execute(call("wait"), cancel)))
    await started.wait()
    cancel.set()
    items = await collecting

    assert [item.text for item in of_type(items, ToolOutput)] == ["begun", "cleaned up"]
    assert finished(items).outcome == "cancelled"
    assert message(items).is_error


async def test_a_tool_that_gets_ready_in_spite_of_a_cancel_keeps_its_result(cancel: asyncio.Event):
    async def stubborn(*_: Any) -> str:
        cancel.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "written all the same"
        return "never"

    items = await collect(executor_of(FakeTool("write", stubborn)).execute(call("write"), cancel))

    assert (finished(items).outcome, message(items).text) == ("ok", "written all the same")


async def test_nothing_is_begun_once_the_turn_is_cancelled(cancel: asyncio.Event):
    tool = FakeTool("shell")
    cancel.set()

    items = await collect(executor_of(tool).execute(call("shell"), cancel))

    assert tool.calls == []
    assert [type(item) for item in items] == [ToolStarted, ToolFinished, ToolMessage]
    assert finished(items).outcome == "cancelled"


async def test_a_cancel_ends_the_wait_for_a_persons_answer(cancel: asyncio.Event):
    class SilentPerson(OpenGate):
        async def decide(self, tool: Tool, arguments: Mapping[str, Any]) -> GateDecision:
            cancel.set()
            await asyncio.Event().wait()
            return GateDecision(True, "never")

    tool = FakeTool("shell")
    items = await collect(executor_of(tool, gate=SilentPerson()).execute(call("shell"), cancel))

    assert tool.calls == []
    assert finished(items).outcome == "cancelled"


async def test_a_tool_does_not_outlive_a_reader_who_left(cancel: asyncio.Event):
    ended = asyncio.Event()

    async def work(_: Any, context: ToolContext) -> str:
        context.emit("begun")
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    items = executor_of(FakeTool("shell", work)).execute(call("shell"), cancel)
    async with closing(items):
        assert isinstance(await anext(items), ToolStarted)
        assert isinstance(await anext(items), ToolOutput)

    assert ended.is_set()
