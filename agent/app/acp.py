"""Gives editors what `agent.acp` serves them: how sessions are opened and listed, and the two pipes."""

import asyncio
import logging
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.core.errors import AgentError, ExitCode, UsageError
from agent.resources import state_folder

if TYPE_CHECKING:
    from agent.acp.host import KnownSession, Opening
    from agent.config.load import LoadedSettings
    from agent.core.handle import SessionHandle, SessionMode

MOST_LISTED = 100
_VISION_SECONDS = 3.0
_GIVES_VISION = ("--mmproj", "-mm", "--mmproj-url", "-mmu")


@dataclass(frozen=True, slots=True, kw_only=True)
class EditorHost:
    """Implements `agent.acp.host.Host`. Without `profile` and `mode` the settings decide."""

    profile: str = ""
    mode: "SessionMode | None" = None

    async def open(self, opening: "Opening") -> "SessionHandle":
        interactive = await asyncio.to_thread(import_module, "agent.app.chat.interactive")
        resume = opening.resume
        if resume:
            await asyncio.to_thread(_require, opening.workspace, resume)
        loaded = await asyncio.to_thread(self._settings, opening)
        return await interactive.open_session(
            opening.workspace, loaded=loaded, resume=resume or None, fork=opening.fork
        )

    async def sees_images(self) -> bool:
        from agent.app.background import in_background

        try:
            async with asyncio.timeout(_VISION_SECONDS):
                return await in_background(self._sees_images)
        except (AgentError, TimeoutError):
            return False

    def _sees_images(self) -> bool:
        """By the server that runs; one that is not up yet by what it would be started with."""
        from agent.acp.host import Opening
        from agent.app.chat.pictures import sees, sees_at
        from agent.app.servers.serving import choose

        serving = choose(self._settings(Opening(workspace=Path.cwd())))
        if not serving.is_managed:
            url = serving.loaded.settings.server.url or serving.profile.url or ""
            return sees_at(url.rstrip("/").removesuffix("/v1"), serving.api_key())
        running = serving.running()
        if running is not None:
            return sees(running)
        return any(word.partition("=")[0] in _GIVES_VISION for word in serving.profile.extra_args)

    async def sessions(self, workspace: Path) -> "list[KnownSession]":
        return await asyncio.to_thread(_known_sessions, workspace)

    def _settings(self, opening: "Opening") -> "LoadedSettings":
        from agent.app.chat.front import settings_for
        from agent.ui.options import Opening as Wanted

        wanted = Wanted(profile=self.profile, mode=self.mode, resume=opening.resume)
        return with_mcp_servers(settings_for(opening.workspace, wanted), opening.mcp_servers)


def run_acp(profile: str = "", mode: "SessionMode | None" = None) -> int:
    """Serves the editor at stdin and stdout until it leaves; returns the exit code.

    Raises:
        UsageError: the protocol's library is not installed.
    """
    if find_spec("acp") is None:
        raise UsageError(
            "the package agent-client-protocol is not installed",
            "pip install 'dflash-agent[acp]'",
        )
    _log_to_stderr()
    if sys.stdin is not None and sys.stdin.isatty():
        print(
            "agent acp speaks the Agent Client Protocol with the editor that starts it, see docs/acp.md; "
            "Ctrl-D ends it",
            file=sys.stderr,
        )
    return asyncio.run(_serve(EditorHost(profile=profile, mode=mode)))


def with_mcp_servers(loaded: "LoadedSettings", tables: Mapping[str, Mapping[str, Any]]) -> "LoadedSettings":
    """The settings with servers that the editor handed over; one of the same name takes the place of ours.

    Raises:
        UsageError: a value cannot be used.
    """
    if not tables:
        return loaded
    from pydantic import ValidationError

    from agent.config.model import McpServer

    servers = dict(loaded.settings.mcp.servers)
    for name, table in tables.items():
        try:
            servers[name] = McpServer.model_validate(table)
        except ValidationError as error:
            raise UsageError(f"MCP server {name}: {error.errors()[0]['msg']}") from None
    mcp = loaded.settings.mcp.model_copy(update={"servers": servers})
    return replace(loaded, settings=loaded.settings.model_copy(update={"mcp": mcp}))


async def _serve(host: EditorHost) -> int:
    from agent.acp.server import serve
    from agent.app.interruption import ended_by_signals

    source, sink = _own_pipes()
    stop = asyncio.Event()
    with ended_by_signals(stop):
        await serve(host, source, sink, stop)
    return int(ExitCode.INTERRUPTED if stop.is_set() else ExitCode.DONE)


def _own_pipes() -> tuple[int, int]:
    """The editor's pipes at numbers of their own. Whatever else is printed goes to stderr from now on."""
    sys.stdout.flush()
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return source, sink


class _OneLine(logging.Formatter):
    """An error in one line: what went wrong, without the way there."""

    def format(self, record: logging.LogRecord) -> str:
        kind, error = record.exc_info[:2] if record.exc_info else (None, None)
        why = f": {kind.__name__}: {error}" if kind is not None else ""
        return " ".join(f"agent acp: {record.getMessage()}{why}".split())


def _log_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine())
    logging.basicConfig(handlers=[handler], level=logging.WARNING)


def _require(workspace: Path, session_id: str) -> None:
    """An editor names a session by its whole id. Raises UsageError: there is none."""
    from agent.session.catalogue import session_folders

    known = {folder.name for folder in session_folders(state_folder(), workspace.resolve())}
    if session_id not in known:
        raise UsageError(f"no session {session_id!r} is recorded for {workspace}")


def _known_sessions(workspace: Path) -> "list[KnownSession]":
    from agent.acp.host import KnownSession
    from agent.session.catalogue import session_folders, summarise

    found = []
    for summary in map(summarise, session_folders(state_folder(), workspace.resolve())):
        if summary.kind != "chat":
            continue
        title = summary.title or " ".join(summary.task.split())[:80] or summary.id
        found.append(KnownSession(id=summary.id, title=title, updated=summary.started))
        if len(found) == MOST_LISTED:
            break
    return found
