"""Whatever happens in a session, each request extends the one before it, or an event has said why not."""

import asyncio
import json
import os
import sys
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count, pairwise
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agent.app.mcp.servers import MCP_FILE
from agent.app.turns.conversation import system_prompt
from agent.config.trust import TrustStore
from agent.core.errors import UsageError
from agent.core.events import Event
from agent.core.handle import Answer
from tests.app.talk import Talk, extends, served_by, talking
from tests.conftest import StartServer
from tests.fakes.script import Step, StepLike, call, parse_step
from tests.fakes.scripted_server import ScriptedServer
from tests.fakes.state import RecordedRequest
from tests.mcp.conftest import SERVER
from tests.skills.shelf import write_skill

SUMMING_UP = "Sum up our conversation"
BESIDE = "By the way, and apart from the work"
NUMBERS = count()
AnswerKind = Literal["once", "deny"]


@dataclass
class Session:
    """A session that is opened again now and then. Both servers answer from the same queue of replies."""

    work: Path
    servers: list[ScriptedServer]
    replies: deque[StepLike]
    seen: list[Event] = field(default_factory=list)
    on_second: bool = False
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def open(self, resume: str | None = None) -> None:
        self.talk: Talk = await self.stack.enter_async_context(
            talking(self.work, *self.servers, serve=served_by(*self.servers), subagents="on", resume=resume)
        )

    async def close(self) -> None:
        await self.stack.aclose()
        self.seen += self.talk.seen
        self.stack = AsyncExitStack()

    async def turn(self, text: str, *replies: StepLike) -> Any:
        self.replies.extend(replies)
        return await self.talk.turn(text)

    async def asked(self, kind: AnswerKind, *, steer: str = "") -> None:
        """A turn with a change that a person is asked about."""
        made = call("write", path=f"made{next(NUMBERS)}.txt", content="made\n")
        self.replies.extend([made, "Fine."])
        requests, turns = len(self.talk.of("approval_request")), len(self.talk.of("turn_finished"))
        self.talk.session.prompt("Make it")
        request = await self.talk.until("approval_request", requests + 1)
        if steer:
            self.talk.session.steer(steer)
        self.talk.session.answer(request.request_id, Answer(kind=kind))
        await self.talk.until("turn_finished", turns + 1)


async def says(session: Session) -> None:
    await session.turn("Hello", "Hello.")


async def thinks(session: Session) -> None:
    await session.turn("Think", Step(reasoning="Hm, well.", text="I think so."))


async def reads(session: Session) -> None:
    await session.turn("Look", Step(text="I look.", tool_calls=call("read", path="a.py").tool_calls), "Seen.")


async def allowed(session: Session) -> None:
    session.talk.session.set_mode("ask")
    await session.asked("once")


async def denied(session: Session) -> None:
    session.talk.session.set_mode("ask")
    await session.asked("deny")


async def steered(session: Session) -> None:
    session.talk.session.set_mode("ask")
    await session.asked("once", steer="And be quick")


async def refused_by_mode(session: Session) -> None:
    session.talk.session.set_mode("plan")
    await session.turn("Make it", call("write", path="never.txt", content="x"), "I may not.")


async def malformed(session: Session) -> None:
    bad = {"tool_calls": [{"name": "read", "arguments": '{"path": '}]}
    await session.turn("Look", bad, call("create_file", path="x"), "Fine.")


async def interrupted(session: Session) -> None:
    session.replies.append({"fault": "pings", "text": "I begin to"})
    deltas, turns = len(session.talk.of("text_delta")), len(session.talk.of("turn_finished"))
    session.talk.session.prompt("Go on")
    await session.talk.until("text_delta", deltas + 1)
    session.talk.session.cancel()
    await session.talk.until("turn_finished", turns + 1)


async def queued(session: Session) -> None:
    turns = len(session.talk.of("turn_finished"))
    session.replies.extend([call("glob", pattern="*"), "One.", "Two."])
    session.talk.session.prompt("First")
    session.talk.session.follow_up("Second")
    await session.talk.until("turn_finished", turns + 2)


async def uses_a_skill(session: Session) -> None:
    write_skill(session.work / f".agents/skills/later{next(NUMBERS)}")
    skills = await session.talk.session.command("skills", {})
    name = next(iter(skills)).name
    await session.turn(f"/{name}", "Done as it says.")


async def calls_mcp(session: Session) -> None:
    found = call("mcp_find", query="echo")
    await session.turn("Find", found, "Found.")


async def reconnects_mcp(session: Session) -> None:
    for action in ("disable", "enable"):
        await session.talk.session.command("mcp", {"name": "one", "action": action})
    await says(session)


async def delegates(session: Session) -> None:
    await session.turn("Find it", call("task", prompt="Where is it?"), "In a.py.", "It is in a.py.")


async def goes_back(session: Session) -> None:
    points = [one for one in await session.talk.session.command("rewind_points", {}) if one.chat]
    if points:
        await session.talk.session.command("rewind", {"to_turn": points[-1].turn, "what": "chat"})
    await says(session)


async def undoes(session: Session) -> None:
    with suppress(UsageError):  # there may be nothing to take back
        await session.talk.session.command("undo", {})
    await says(session)


async def runs_a_command(session: Session) -> None:
    await session.talk.session.command("shell", {"command": "echo hello"})
    await says(session)


async def asks_beside(session: Session) -> None:
    await says(session)
    session.replies.append("It is nine.")
    aside = await session.talk.session.command("btw", {"question": "How late is it?"})
    assert aside.answer == "It is nine."
    await says(session)


async def compacts(session: Session) -> None:
    await session.turn("Tell me a lot", "It is a long story. " * 80)
    with suppress(UsageError):  # it may become no shorter
        await session.talk.session.command("compact", {})
    await says(session)


async def changes_profile(session: Session) -> None:
    session.on_second = not session.on_second
    await session.talk.session.command("profile", {"name": "other1" if session.on_second else "first0"})
    await says(session)


async def is_resumed(session: Session) -> None:
    await says(session)
    await session.close()
    session.on_second = False
    await session.open(resume="last")
    await says(session)


MOVES = (
    says, thinks, reads, allowed, denied, steered, refused_by_mode, malformed, interrupted, queued,
    uses_a_skill, calls_mcp, reconnects_mcp, delegates, goes_back, undoes, runs_a_command, asks_beside,
    compacts, changes_profile, is_resumed,
)  # fmt: skip


def of_the_conversation(servers: Sequence[ScriptedServer]) -> list[RecordedRequest]:
    """The requests of the session's own steps: none of sub-agents, for summaries or beside the work."""
    chats = sorted((one for server in servers for one in server.chats), key=lambda one: one.arrived_at)
    return [
        one
        for one in chats
        if one.body["messages"][0]["content"].startswith(system_prompt())
        and not any(words in str(one.body["messages"][-1]["content"]) for words in (SUMMING_UP, BESIDE))
    ]


def beside_the_work(servers: Sequence[ScriptedServer]) -> list[tuple[RecordedRequest, RecordedRequest]]:
    """Each question beside the work, and the request before it."""
    pairs = [pair for server in servers for pair in pairwise(server.chats)]
    return [pair for pair in pairs if BESIDE in str(pair[1].body["messages"][-1]["content"])]


def prompt_of(request: RecordedRequest) -> tuple[str, list[Any]]:
    """What a prompt is rendered from: everything before the messages, and the messages."""
    body: Mapping[str, Any] = request.body
    before = {name: body.get(name) for name in ("tools", "chat_template_kwargs")}
    return json.dumps(before), body["messages"]


def holds_together(events: Sequence[Event], requests: Sequence[RecordedRequest]) -> None:
    broken, seen = "the first one", 0
    for event in events:
        if event.type == "prefix_broken":
            broken = event.cause
        elif event.type == "step_started":
            (tools, before), (tools_now, now) = (
                prompt_of(requests[max(0, place)]) for place in (seen - 1, seen)
            )
            if not broken:
                assert tools == tools_now
                assert extends(before, now), f"request {seen} does not extend the one before it"
            broken, seen = "", seen + 1
    assert seen == len(requests)
    for request in requests:  # templates refuse a second system message, and one that is not the first
        roles = [message["role"] for message in request.body["messages"]]
        assert (roles[0], roles.count("system")) == ("system", 1)


@asynccontextmanager
async def opened(work: Path, start: StartServer) -> AsyncIterator[Session]:
    (work / "a.py").write_text("x = 1\n", "utf-8")
    path = work / MCP_FILE
    entry = {"command": sys.executable, "args": ["-S", str(SERVER), "tools=60"]}
    path.write_text(json.dumps({"mcpServers": {"one": entry}}), "utf-8")
    TrustStore.of(os.environ).trust(path, path.read_bytes())
    replies: deque[StepLike] = deque()

    def reply(body: Mapping[str, Any]) -> Step:
        if SUMMING_UP in str(body["messages"][-1]["content"]):
            return Step(text="We talked.", times=0)
        return replace(parse_step(replies.popleft()), times=0)

    session = Session(work, [start(reply), start(reply)], replies)
    await session.open()
    try:
        yield session
    finally:
        await session.close()


@pytest.mark.timeout(300)
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=st.lists(st.sampled_from(MOVES), min_size=2, max_size=7))
@example(moves=list(MOVES))
@example(moves=[says, *reversed(MOVES)])
def test_requests_of_a_session_extend_each_other_unless_told_otherwise(
    moves: list[Any], homes: Path, scripted_server: StartServer
):
    async def play() -> Session:
        work = homes / f"work{next(NUMBERS)}"
        work.mkdir()
        async with opened(work, scripted_server) as session:
            for move in moves:
                await move(session)
                assert not session.replies, f"{move.__name__} left replies"
        return session

    session = asyncio.run(play())
    holds_together(session.seen, of_the_conversation(session.servers))
    for before, beside in beside_the_work(session.servers):
        (tools, messages), (tools_now, now) = map(prompt_of, (before, beside))
        assert tools == tools_now
        assert extends(messages, now)
