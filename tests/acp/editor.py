"""An editor: the client of the protocol's own library, at the pipes of `agent acp`."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from acp import PROTOCOL_VERSION, text_block
from acp.client.connection import ClientSideConnection
from acp.connection import StreamDirection, StreamEvent
from acp.schema import (
    AllowedOutcome,
    DeniedOutcome,
    PermissionOption,
    RequestPermissionResponse,
    ToolCallUpdate,
)

from agent.acp.server import serve
from agent.app.acp import EditorHost
from agent.core.handle import SessionMode

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 60
_LIMIT_BYTES = 50 * 1024 * 1024


@dataclass(slots=True)
class Question:
    """A request for permission as the editor got it. `answer` chooses an option by its id."""

    session_id: str
    call: ToolCallUpdate
    options: Sequence[PermissionOption]
    chosen: "asyncio.Future[str]"

    def answer(self, option_id: str) -> None:
        """Chooses an option; `""` closes the dialogue."""
        self.chosen.set_result(option_id)


class EditorClient:
    """Writes down what it is told. `wire` has every message that came, as it came."""

    def __init__(self) -> None:
        self.updates: list[tuple[str, dict[str, Any]]] = []
        self.questions: list[Question] = []
        self.news = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        record = update.model_dump(mode="json", by_alias=True, exclude_none=True)
        self.updates.append((session_id, record))
        self.news.set()

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **kwargs: Any
    ) -> RequestPermissionResponse:
        chosen: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.questions.append(Question(session_id, tool_call, options, chosen))
        self.news.set()
        option = await chosen
        if not option:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=option))


@dataclass(slots=True)
class Order:
    """Names what comes, answers and updates, in the order of the wire."""

    names: list[str] = field(default_factory=list)

    def note(self, event: StreamEvent) -> None:
        if event.direction is StreamDirection.INCOMING:
            message = event.message
            update = message.get("params", {}).get("update", {}) if "method" in message else {}
            self.names.append(update.get("sessionUpdate") or message.get("method") or "answer")


@dataclass(slots=True)
class Editor:
    """A connected editor. `order` is as in `Order`."""

    client: EditorClient
    agent: ClientSideConnection
    order: list[str]

    async def begin(self, folder: Path, **options: Any) -> str:
        """Initializes, and begins a session in `folder`; gives its id."""
        await self.agent.initialize(protocol_version=PROTOCOL_VERSION)
        return (await self.agent.new_session(cwd=str(folder), mcp_servers=[], **options)).session_id

    async def say(self, session_id: str, text: str) -> Any:
        return await self.agent.prompt(session_id=session_id, prompt=[text_block(text)])

    def of(self, kind: str, session_id: str = "") -> list[dict[str, Any]]:
        """The updates of a kind so far."""
        return [
            update
            for session, update in self.client.updates
            if update["sessionUpdate"] == kind and session_id in ("", session)
        ]

    def text(self, kind: str = "agent_message_chunk", session_id: str = "") -> str:
        return "".join(update["content"]["text"] for update in self.of(kind, session_id))

    def card(self, call_id: str) -> dict[str, Any]:
        """A tool call with all its updates laid over each other, as an editor shows it in the end."""
        shown: dict[str, Any] = {}
        for _, update in self.client.updates:
            if update.get("toolCallId") == call_id:
                shown |= update
        return shown

    def cards(self) -> list[dict[str, Any]]:
        return [self.card(update["toolCallId"]) for update in self.of("tool_call")]

    async def until(self, kind: str, count: int = 1, **fields: Any) -> dict[str, Any]:
        """Waits for the `count`-th update of a kind whose fields have these values."""

        def found() -> list[dict[str, Any]]:
            wanted = fields.items()
            return [one for one in self.of(kind) if all(one.get(name) == value for name, value in wanted)]

        await self._wait(lambda: len(found()) >= count)
        return found()[count - 1]

    async def question(self, number: int = 1) -> Question:
        """Waits for the `number`-th request for permission."""
        await self._wait(lambda: len(self.client.questions) >= number)
        return self.client.questions[number - 1]

    async def _wait(self, is_there: Any) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not is_there():
                self.client.news.clear()
                await self.client.news.wait()


def environment(home: Path, **variables: str) -> dict[str, str]:
    """One that nothing of the machine's own settings reaches."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    homes = {f"AGENT_{kind.upper()}_HOME": str(home / kind) for kind in ("config", "state", "data")}
    return {
        **kept,
        **homes,
        "HOME": str(home),
        "PYTHONPATH": str(ROOT),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        **variables,
    }


async def start(variables: Mapping[str, str], *arguments: str, folder: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "agent",
        "acp",
        *arguments,
        cwd=folder,
        env=dict(variables),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=_LIMIT_BYTES,
    )


async def ended(process: asyncio.subprocess.Process) -> int:
    """Waits for a process; gives its exit code."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await process.wait()


def connected(writer: asyncio.StreamWriter, reader: asyncio.StreamReader) -> Editor:
    client, order = EditorClient(), Order()
    agent = ClientSideConnection(
        cast("Any", client), writer, reader, use_unstable_protocol=True, observers=[order.note]
    )
    return Editor(client, agent, order.names)


@asynccontextmanager
async def editing(folder: Path, mode: SessionMode | None = None) -> AsyncIterator[Editor]:
    """An editor at two pipes, with the agent's side in this process: quick, and the same bytes go through.

    The editor closes its side in the end; the agent has to end by itself then.
    """
    source, to_agent = os.pipe()
    from_agent, sink = os.pipe()
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_LIMIT_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(from_agent, "rb", 0))
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(to_agent, "wb", 0)
    )
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    agent = asyncio.create_task(serve(EditorHost(mode=mode), source, sink, asyncio.Event()))
    editor = connected(writer, reader)
    try:
        yield editor
    finally:
        writer.close()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await agent
        os.close(sink)
        os.close(source)
        await editor.agent.close()


@asynccontextmanager
async def started(
    variables: Mapping[str, str], *arguments: str, folder: Path, code: int | None = 0
) -> AsyncIterator[tuple[Editor, asyncio.subprocess.Process]]:
    """An editor with `agent acp` in a process of its own, which has to end by itself, with `code`."""
    process = await start(variables, *arguments, folder=folder)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    complaints = asyncio.create_task(process.stderr.read())
    editor = connected(process.stdin, process.stdout)
    try:
        yield editor, process
        process.stdin.close()
        came = await ended(process)
        said = (await complaints).decode("utf-8", "replace")
        assert "Traceback" not in said, said
        assert code in (None, came), said
    finally:
        await editor.agent.close()
        if process.returncode is None:
            process.kill()
            await process.wait()
        await complaints


async def raw(process: asyncio.subprocess.Process, *lines: bytes) -> list[dict[str, Any]]:
    """Sends lines as they are, closes, and gives all answers."""
    assert process.stdin is not None
    for line in lines:
        process.stdin.write(line + b"\n")
    process.stdin.close()
    async with asyncio.timeout(PATIENCE_SECONDS):
        out, err = await process.communicate()
    assert b"Traceback" not in err, err.decode("utf-8", "replace")
    return [json.loads(line) for line in out.splitlines()]
