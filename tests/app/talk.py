"""A live session on a server that follows a script, and a front that writes down what it is shown."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from agent.app.chat.interactive import InteractiveSession, open_session
from agent.app.servers.serving import Serving
from agent.config.layers import Origin
from agent.config.load import LoadedSettings
from agent.config.model import all_settings, default_settings
from agent.core.events import Event
from agent.server.profile import Profile
from tests.fakes.scripted_server import ScriptedServer

PATIENCE_SECONDS = 60
_SETTINGS = ("mode", "allow", "ask", "deny", "hooks", "after_edit", "reply_tokens", "subagents", "tool_calls")


@dataclass(slots=True)
class Talk:
    """A session with one front. `seen` are all events so far."""

    session: InteractiveSession
    seen: list[Event] = field(default_factory=list)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    async def until(self, kind: str, count: int = 1) -> Any:
        """Waits until `count` events of a type were seen, and gives the last of them."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(self.of(kind)) < count:
                self._news.clear()
                await self._news.wait()
        return self.of(kind)[count - 1]

    async def turn(self, text: str) -> Any:
        """One whole turn; gives its `TurnFinished`."""
        before = len(self.of("turn_finished"))
        self.session.prompt(text)
        return await self.until("turn_finished", before + 1)

    def of(self, kind: str) -> list[Any]:
        return [event for event in self.seen if event.type == kind]

    def kinds(self, *of_interest: str) -> list[str]:
        return [event.type for event in self.seen if event.type in of_interest]

    async def watch(self) -> None:
        async for event in self.session.events():
            self.seen.append(event)
            self._news.set()


def settings_with(
    reply_tokens: int = 2048,
    hooks: Mapping[str, Any] | None = None,
    after_edit: Sequence[Any] = (),
    subagents: str = "auto",
    tool_calls: int = 0,
    **permissions: Any,
) -> LoadedSettings:
    """Default settings, with other values in `permissions` and `hooks`."""
    settings = default_settings(Path("/nowhere"))
    section = settings.permissions.model_copy(update=permissions)
    limits = settings.limits.model_copy(update={"reply_tokens": reply_tokens, "max_tool_calls": tool_calls})
    origins = {info.key: Origin("default") for info in all_settings()}
    others = {
        "permissions": section,
        "limits": limits,
        "after_edit": tuple(after_edit),
        "subagents": subagents,
        "hooks": settings.hooks.model_copy(update=hooks or {}),
    }
    return LoadedSettings(settings.model_copy(update=others), origins)


class Addressed(Protocol):
    """A server of any kind that is not started here."""

    @property
    def url(self) -> str: ...


def served_by(*servers: Addressed, protocol: str = "native") -> Callable[[LoadedSettings], Serving]:
    """Chooses the server whose number the profile's name ends with, the first by default."""

    def serve(loaded: LoadedSettings) -> Serving:
        name = loaded.settings.profile
        number = int(name[-1]) if name[-1].isdigit() else 0
        profile = Profile.model_validate(
            {
                "name": name,
                "engine": "remote",
                "url": servers[number].url,
                "tools": {"protocol": "constrained" if name.startswith("bound") else protocol},
            }
        )
        return Serving(profile, loaded, "none")

    return serve


@asynccontextmanager
async def talking(workspace: Path, *servers: Addressed, **options: Any) -> AsyncIterator[Talk]:
    """A session in `workspace`; what `settings_with` knows are settings, the rest is `open_session`'s."""
    permissions = {name: options.pop(name) for name in _SETTINGS if name in options}
    serve = options.pop("serve", None) or served_by(*servers, protocol=options.pop("protocol", "native"))
    session = await open_session(workspace, loaded=settings_with(**permissions), serve=serve, **options)
    async with watched(session) as talk:
        yield talk


@asynccontextmanager
async def watched(session: InteractiveSession) -> AsyncIterator[Talk]:
    """A session with its front, and closed at the end."""
    talk = Talk(session)
    front = asyncio.create_task(talk.watch())
    try:
        yield talk
    finally:
        await session.close()
        await front


def messages_of(server: ScriptedServer) -> list[list[dict[str, Any]]]:
    """The messages of each chat request."""
    return [request.body["messages"] for request in server.chats]


def records_in(state: Path) -> list[dict[str, Any]]:
    """The records of the newest session."""
    newest = max(state.glob("sessions/*/*/events.jsonl"))
    return [json.loads(line) for line in newest.read_text("utf-8").splitlines()]


def extends(before: Sequence[Any], after: Sequence[Any]) -> bool:
    return list(after[: len(before)]) == list(before)
