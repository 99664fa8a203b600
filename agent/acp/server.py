"""The agent's side of the protocol: requests of an editor, each answered or refused in one line."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import acp
from acp import PROTOCOL_VERSION, Client, RequestError
from acp.helpers import ContentBlock
from acp.schema import (
    AgentCapabilities,
    AuthenticateResponse,
    CloseSessionResponse,
    ForkSessionResponse,
    HttpMcpServer,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    McpCapabilities,
    McpServerStdio,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionForkCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionMode,
    SessionModeState,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
    SetSessionModeResponse,
    SseMcpServer,
)

from agent import __version__
from agent.acp.conversation import EditorSession
from agent.acp.host import Host, Opening
from agent.acp.mcp import tables_of
from agent.acp.stdio import StdioTransport
from agent.core.errors import AgentError, UsageError
from agent.core.handle import MODES
from agent.core.outside_text import one_line

_INVALID_PARAMS = -32602
_INTERNAL = -32603
_NOT_FOUND = -32002
_MODE_NAMES = {
    "plan": ("Plan", "reads only; changes nothing"),
    "ask": ("Ask", "asks before it changes files or runs commands"),
    "accept-edits": ("Accept edits", "changes files of the workspace, asks before it runs commands"),
    "auto": ("Auto", "does everything that no rule forbids without asking"),
}


async def serve(host: Host, source: int, sink: int, stop: asyncio.Event) -> None:
    """Answers an editor until it closes its side, is gone, or `stop` is set; then ends every session.

    Args:
        source: file descriptor that the editor writes to.
        sink: file descriptor that the editor reads from.
    """
    transport = StdioTransport(source, sink)
    agent = EditorAgent(host)
    watch = asyncio.create_task(_end_when(stop, transport))
    try:
        await _connect(agent, transport)
    finally:
        watch.cancel()


async def _connect(agent: "EditorAgent", transport: StdioTransport) -> None:
    from acp.agent.connection import AgentSideConnection

    connection = AgentSideConnection(agent, transport, listening=False, use_unstable_protocol=True)
    try:
        await connection.listen()
    finally:
        # Before the connection: what is under way is answered, and the last events are told.
        await agent.close()
        await transport.settled()
        await connection.close()


async def _end_when(stop: asyncio.Event, transport: StdioTransport) -> None:
    await stop.wait()
    transport.end()


class EditorAgent(acp.Agent):
    """Implements `acp.Agent` for one editor, with any number of sessions."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._client: Client | None = None
        self._sessions: dict[str, EditorSession] = {}
        self._opening = asyncio.Lock()
        self._is_closed = False

    def on_connect(self, conn: Client) -> None:
        self._client = conn

    async def close(self) -> None:
        """Ends every session, all at the same time; one that is being opened ends when it is open."""
        self._is_closed = True
        sessions = list(self._sessions.values())
        self._sessions.clear()
        await asyncio.gather(*(session.close() for session in sessions), return_exceptions=True)

    async def initialize(
        self, protocol_version: int, client_capabilities: Any = None, client_info: Any = None, **_: Any
    ) -> InitializeResponse:
        sees_images = await self._host.sees_images()
        # An editor that speaks another version decides itself whether ours will do.
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=sees_images, audio=False, embedded_context=True),
                mcp_capabilities=McpCapabilities(http=True, sse=True),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(),
                    fork=SessionForkCapabilities(),
                    resume=SessionResumeCapabilities(),
                    close=SessionCloseCapabilities(),
                ),
            ),
            auth_methods=[],
            agent_info=Implementation(name="dflash-agent", title="agent", version=__version__),
        )

    async def authenticate(self, method_id: str, **_: Any) -> AuthenticateResponse | None:
        raise RequestError(_INVALID_PARAMS, "there is nothing to sign in to: the model runs where you say")

    async def new_session(
        self,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: "Sequence[Any] | None" = None,
        **_: Any,
    ) -> NewSessionResponse:
        session = await self._open(cwd, mcp_servers)
        response = NewSessionResponse(session_id=session.id, modes=_modes(session))
        session.start()
        return response

    async def load_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: "Sequence[Any] | None" = None,
        additional_directories: list[str] | None = None,
        **_: Any,
    ) -> LoadSessionResponse:
        session = await self._open_again(session_id, cwd, mcp_servers)
        with _told_as_errors():
            await session.replay()
        response = LoadSessionResponse(modes=_modes(session))
        session.start()
        return response

    async def resume_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: "Sequence[Any] | None" = None,
        **_: Any,
    ) -> ResumeSessionResponse:
        session = await self._open_again(session_id, cwd, mcp_servers)
        response = ResumeSessionResponse(modes=_modes(session))
        session.start()
        return response

    async def fork_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: "Sequence[Any] | None" = None,
        **_: Any,
    ) -> ForkSessionResponse:
        session = await self._open_again(session_id, cwd, mcp_servers, fork=True)
        response = ForkSessionResponse(session_id=session.id, modes=_modes(session))
        session.start()
        return response

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_: Any
    ) -> ListSessionsResponse:
        folder = _folder(cwd) if cwd else Path.cwd()
        with _told_as_errors():
            known = await self._host.sessions(folder)
        return ListSessionsResponse(
            sessions=[
                SessionInfo(
                    session_id=one.id, cwd=str(folder), title=one.title, updated_at=one.updated or None
                )
                for one in known
            ]
        )

    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        session = self._session(session_id)
        del self._sessions[session_id]
        await session.close()
        return CloseSessionResponse()

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> SetSessionModeResponse:
        session = self._session(session_id)
        for mode in MODES:
            if mode == mode_id:
                session.handle.set_mode(mode)
                return SetSessionModeResponse()
        known = ", ".join(MODES)
        raise RequestError(_INVALID_PARAMS, f"no mode is called {one_line(mode_id, 40)!r}; there are {known}")

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> SetSessionConfigOptionResponse:
        raise RequestError(_INVALID_PARAMS, "there are no options; /model changes the profile")

    async def prompt(self, session_id: str, prompt: list[ContentBlock], **_: Any) -> PromptResponse:
        session = self._session(session_id)
        with _told_as_errors():
            return await session.prompt(prompt)

    async def cancel(self, session_id: str, **_: Any) -> None:
        session = self._sessions.get(session_id)
        if session is not None:
            session.cancel()

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        raise RequestError.method_not_found(f"_{method}")

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        return

    def _session(self, session_id: str) -> EditorSession:
        session = self._sessions.get(session_id)
        if session is None:
            shown = one_line(session_id, 60)
            raise RequestError(_NOT_FOUND, f"no session {shown!r} is open; load it first, or begin a new one")
        return session

    async def _open_again(
        self, session_id: str, cwd: str, mcp_servers: "Sequence[Any] | None", fork: bool = False
    ) -> EditorSession:
        if not session_id:
            raise RequestError(_NOT_FOUND, "no session is named")
        return await self._open(cwd, mcp_servers, resume=session_id, fork=fork)

    async def _open(
        self, cwd: str, mcp_servers: "Sequence[Any] | None", resume: str = "", fork: bool = False
    ) -> EditorSession:
        if self._client is None:
            raise RequestError(_INTERNAL, "the connection is not ready")
        tables = tables_of(_known_servers(mcp_servers))
        opening = Opening(workspace=_folder(cwd), resume=resume, fork=fork, mcp_servers=tables)
        # One after the other: an editor may load a session while it is still being opened.
        async with self._opening:
            if resume and not fork and resume in self._sessions:
                await self._sessions.pop(resume).close()
            with _told_as_errors():
                handle = await self._host.open(opening)
            if self._is_closed:
                await handle.close()
                raise RequestError(_INTERNAL, "the connection is closed")
            session = EditorSession(handle, self._client)
            self._sessions[session.id] = session
        return session


def _known_servers(
    servers: "Sequence[Any] | None",
) -> list[McpServerStdio | HttpMcpServer | SseMcpServer]:
    return [one for one in servers or () if isinstance(one, McpServerStdio | HttpMcpServer | SseMcpServer)]


def _folder(cwd: str) -> Path:
    if not Path(cwd).is_absolute():
        raise RequestError(_INVALID_PARAMS, f"cwd has to be an absolute path, not {one_line(cwd, 100)!r}")
    return Path(cwd)


def _modes(session: EditorSession) -> SessionModeState:
    modes = [
        SessionMode(id=mode, name=_MODE_NAMES[mode][0], description=_MODE_NAMES[mode][1]) for mode in MODES
    ]
    return SessionModeState(current_mode_id=session.handle.facts.mode, available_modes=modes)


@contextmanager
def _told_as_errors() -> Iterator[None]:
    """An error for people as an error of JSON-RPC, on one line."""
    try:
        yield
    except AgentError as error:
        hint = f" ({error.hint})" if error.hint else ""
        code = _INVALID_PARAMS if isinstance(error, UsageError) else _INTERNAL
        raise RequestError(code, one_line(error.message + hint, 500)) from None


__all__ = ["EditorAgent", "serve"]
