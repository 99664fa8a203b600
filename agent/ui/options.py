"""What the interface is started with. Everything that it cannot know by itself is handed in here."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:  # they bring pydantic along, which the input field does not wait for
    from agent.core.handle import SessionHandle, SessionMode

Notify = Literal["bell", "desktop", "off"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """Which session to open. `resume` is an id, or `last` for the newest of this workspace."""

    profile: str = ""
    mode: "SessionMode | None" = None
    resume: str = ""
    fork: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Something that is not there yet. `download_bytes` is 0 where the size is not known.

    `can_fetch` says that `Setup.fetch` would bring it; else `remedy` says what a person can do. `command` is
    what they can type for it in a shell.
    """

    what: str
    remedy: str
    command: str = ""
    download_bytes: int = 0
    can_fetch: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Headway:
    """How far the work on something missing is: `done` of `whole` (0 = not known), bytes if `is_bytes`."""

    name: str
    done: int = 0
    whole: int = 0
    is_bytes: bool = True


Progress = Callable[[Headway], None]
"""May be called from any thread."""


class Setup(Protocol):
    """Looks what the session of an opening lacks before its first turn, and fetches it."""

    async def missing(self, opening: Opening) -> list[Missing]:
        """Empty if the model can answer; else also what is good to know, such as that there is no GPU."""
        ...

    async def fetch(self, opening: Opening, progress: Progress) -> None:
        """Gets all that can be fetched. When it is cancelled it stops, and goes on the next time.

        Raises AgentError: it could not be fetched.
        """
        ...

    async def worth_knowing(self, opening: Opening) -> list[str]:
        """A line for each thing that is missing although the model answers without; each only once."""
        ...


Service = Callable[[Mapping[str, Any]], Awaitable[Any]]
"""Like `SessionHandle.command` for one name: what the interface needs and a session does not offer."""

Opener = Callable[[Opening], Awaitable["SessionHandle"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class UiOptions:
    """`open_session` is called after the first paint. `state_folder` None keeps no history and no drafts.

    `prompt` is sent before all that is typed. `keys` maps the name of a binding to keys with commas between
    them. A turn counts as long, for the notice at its end, after `long_turn_seconds`. `services` come before
    those of the session.
    `read_clipboard` gives the output of a command, instead of a program that is started for it.
    `loaded` is called when everything is imported, `at_rest` some time after the end of a turn.
    """

    workspace: Path
    open_session: Opener
    opening: Opening = Opening()
    prompt: str = ""
    state_folder: Path | None = None
    setup: Setup | None = None
    theme: str = ""
    keys: Mapping[str, str] = field(default_factory=dict)
    notify: Notify = "bell"
    long_turn_seconds: float = 20.0
    services: Mapping[str, Service] = field(default_factory=dict)
    loaded: Callable[[], None] | None = None
    at_rest: Callable[[], None] | None = None
    save_setting: Callable[[str, Any], None] | None = None
    read_clipboard: Callable[[tuple[str, ...]], bytes] | None = None
