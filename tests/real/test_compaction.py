"""After a compaction a small model knows what was asked for, decided and changed, what fails and is open.

What the record says of it is in the summary each time. What the model says in its own words is its ability,
so one of three compactions has to do.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from agent.app.turns.result_room import compactor_at
from agent.core.compaction import Compactor
from agent.core.events import (
    CheckFinished,
    CompactionFinished,
    Event,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    UserMessageAdded,
)
from agent.core.limits import StepLimit
from agent.core.loop import run_turn
from agent.core.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage
from agent.core.stats import StepStats
from agent.core.tool import FileDiff
from agent.core.turn import Conversation, TurnServices
from agent.core.worklog import WorkLog
from agent.llm.client import ChatModel, Connection
from agent.llm.protocol import ConstrainedProtocol
from agent.server.record import Endpoint
from tests.core.rig import executor_of
from tests.real.rig import serving
from tools import built_in_tools

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(900)]

WINDOW = 4_096
TEMPERATURES = (0.0, 0.3, 0.6)
EXPECTED = ("src/retry.py", "250", "test_gives_up", "password", "limits.md")
PROTOCOL = ConstrainedProtocol([tool for tool in built_in_tools() if tool.name in ("read", "finish")])
ASKED = "Look at src/retry.py. How often does it try? Do not change it yet."
LISTING = "\n".join(
    f"{number}\tSTATUS_{number} = {number * 17}  # a code of the old protocol" for number in range(1, 37)
)
EDIT = "Good. Now let it try 4 times, and never log the password."
DECIDED = (
    "I will wait 250 milliseconds between two tries, because the server allows four requests a second. "
    "Still open: docs/limits.md has to be written."
)
AGAIN = "Read src/codes.py as well."
FAILURE = "FAILED tests/test_retry.py::test_gives_up - expected TimeoutError"


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    with serving("embedded", tmp_path_factory.mktemp("server"), context=WINDOW) as found:
        yield found


def bound(call_id: str, name: str, **arguments: str) -> AssistantMessage:
    """A reply as the constrained protocol has it: the call is its text."""
    pairs = ", ".join(f'"{key}": "{value}"' for key, value in {"tool": name, **arguments}.items())
    text = f"{{{pairs}}}"
    return AssistantMessage(text, tool_calls=(ToolCall(call_id, name, arguments, text, in_text=True),))


def history() -> list[Message]:
    return [
        SystemMessage(PROTOCOL.system_text("You are a coding assistant.")),
        UserMessage(ASKED),
        bound("c1", "read", path="src/retry.py"),
        ToolMessage("c1", "read", LISTING),
        bound("c2", "finish", answer="It tries 9 times."),
        ToolMessage("c2", "finish", "Done."),
        UserMessage(EDIT),
        bound("c3", "finish", answer=DECIDED),
        ToolMessage("c3", "finish", "Done."),
        # The last call stays as it is, so what is asked about has to be in front of it.
        UserMessage(AGAIN),
        bound("c4", "read", path="src/codes.py"),
        ToolMessage("c4", "read", "1\tOLD = True"),
    ]


def ended(answer: str) -> TurnFinished:
    return TurnFinished(reason="done", answer=answer, detail="", steps=1, stats=StepStats())


def known() -> WorkLog:
    """What the session has recorded of that."""
    diff = FileDiff("src/retry.py", "TRIES = 9\n", "TRIES = 4\n")
    return WorkLog(
        [
            TurnStarted(attempt=1, started=0.0),
            UserMessageAdded(text=ASKED),
            ended("It tries 9 times."),
            TurnStarted(attempt=1, started=0.0),
            UserMessageAdded(text=EDIT),
            ToolStarted(call_id="c3", tool="edit", arguments={"path": "src/retry.py"}),
            ToolFinished(call_id="c3", tool="edit", outcome="ok", text="", seconds=0.1, diffs=(diff,)),
            CheckFinished(command="make test", passed=False, text=FAILURE, seconds=1.0),
            ended(DECIDED),
            TurnStarted(attempt=1, started=0.0),
            UserMessageAdded(text=AGAIN),
        ]
    )


async def collected(events: AsyncIterator[Event]) -> list[Event]:
    return [event async for event in events]


async def answer_to(question: str, conversation: Conversation, model: ChatModel, room: Compactor) -> str:
    services = TurnServices(
        model=model, executor=executor_of(), guards=[StepLimit(2)], compactor=room, reply_tokens=64
    )
    end = (await collected(run_turn(conversation, question, services)))[-1]
    assert isinstance(end, TurnFinished)
    return end.answer


async def asked_after_a_compaction(
    endpoint: Endpoint, temperature: float
) -> tuple[CompactionFinished, list[str]]:
    model = ChatModel(
        Connection(base_url=endpoint.base_url, api_key=endpoint.api_key),
        PROTOCOL,
        context_tokens=WINDOW,
        sampling={"temperature": temperature},
        cancel=asyncio.Event(),
    )
    room = compactor_at(0.8, model, 64, known())
    conversation = Conversation(messages=history())
    try:
        events = await collected(room.compact(conversation, by_hand=True))
        [done] = [event for event in events if isinstance(event, CompactionFinished)]
        questions = (
            "Which file was changed? Call finish with its path.",
            "How many milliseconds do we wait between two tries? Call finish with the number.",
            "Which test fails? Call finish with its name.",
            "What must never be logged? Call finish with one word.",
            "Which file has still to be written? Call finish with its path.",
        )
        answers = [await answer_to(one, conversation, model, room) for one in questions]
    finally:
        await model.close()
    return done, answers


def test_the_model_knows_what_was_asked_for_decided_and_changed_and_what_is_open(endpoint: Endpoint):
    missed: list[object] = []
    for temperature in TEMPERATURES:
        done, answers = asyncio.run(asked_after_a_compaction(endpoint, temperature))
        assert not done.detail
        assert done.after < done.before
        assert "src/retry.py" in done.summary
        assert "test_gives_up" in done.summary
        if all(word in answer.lower() for word, answer in zip(EXPECTED, answers, strict=True)):
            return
        missed.append((temperature, answers, done.summary))
    raise AssertionError(missed)
