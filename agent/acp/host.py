"""What the protocol server is given: how sessions are opened, and which ones are recorded."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from agent.core.handle import SessionHandle


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """A session that an editor asks for. `resume` is the id of an earlier one, empty for a new session.

    `mcp_servers` are tables by name, in the form of `.mcp.json`.
    """

    workspace: Path
    resume: str = ""
    fork: bool = False
    mcp_servers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSession:
    """A recorded session. `updated` is a time in the form of ISO 8601, empty where it is not known."""

    id: str
    title: str
    updated: str


class Host(Protocol):
    """Implemented by the composition root."""

    async def open(self, opening: Opening) -> SessionHandle:
        """Raises AgentError: settings, profile, session or folder cannot be used."""
        ...

    async def sees_images(self) -> bool:
        """Whether the model of a session in this folder takes images, as far as that is known beforehand."""
        ...

    async def sessions(self, workspace: Path) -> list[KnownSession]:
        """The conversations recorded for a folder, newest first."""
        ...
