"""What a tool is, what it may use and what it gives back."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import BaseModel

from agent.core.confinement import Confinement, Unconfined
from agent.core.messages import Picture

Access = Literal["read", "write", "execute", "finish"]


@dataclass(frozen=True, slots=True)
class FileDiff:
    """A change to one file, for display; `None` stands for a file that is not there."""

    path: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """`model_text` goes into the conversation, `diffs` only to people.

    `refused` says what was denied within the call, one text for each, as to a sub-agent. `pictures` are for
    a model that can see, see `ToolContext.picture`.
    """

    model_text: str
    is_error: bool = False
    diffs: tuple[FileDiff, ...] = ()
    refused: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True, slots=True)
class FileVersion:
    """Identity of a file's content when it was last shown to the model."""

    size: int
    mtime_ns: int
    sha256: str


class FileLedger(Protocol):
    """Knows which files the model has seen, and keeps the original of every file before a change."""

    def seen(self, path: Path) -> FileVersion | None:
        """The version of `path` that the model has seen last, if any."""
        ...

    def record(self, path: Path) -> None:
        """Notes that the model has now seen the present content of `path`."""
        ...

    def is_stale(self, path: Path) -> bool:
        """Whether `path` changed on disk since it was recorded."""
        ...

    def before_change(self, path: Path) -> None:
        """Keeps the present content (or absence) of `path`, so that the change can be undone."""
        ...


class Delegate(Protocol):
    """Has a sub-agent do a piece of work; `edit` lets it change files as far as the permissions do.

    `emit` gets a line for each thing that it does. The result is its report, or why there is none.
    """

    async def __call__(self, prompt: str, *, edit: bool, emit: Callable[[str], None]) -> ToolResult: ...


async def no_picture(_: Path) -> Picture | None:
    """For a model that cannot see."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """Services for one tool call.

    `workspace` is the resolved root that file paths are relative to. `emit` shows live output to
    people. `spill_folder` takes output that is too long for the model. `environment` is the full
    environment for child processes; `confinement` keeps those of the model in. `delegate` is None where there
    are no sub-agents. `is_in_view` says of a file's name and the numbered lines that `read` shows of it,
    whether the model has all of them before it already. `cache_folder` keeps what can be made again, None =
    nothing is kept. `may_read` says of a file below a folder that a call names whether the permissions let it
    be read without a question; a tool that reads many files leaves out the others. `picture` makes of a file
    what can be shown to the model; None where the model cannot see, or the file is no image that it takes.
    `judged` are the real paths of files that the permissions were asked about: between the question and the
    call a link may have been put in the way. None where nobody asked.
    """

    workspace: Path
    ledger: FileLedger
    spill_folder: Path
    emit: Callable[[str], None]
    environment: Mapping[str, str] = field(default_factory=dict)
    shell_timeout_seconds: float = 120.0
    confinement: Confinement = field(default_factory=Unconfined)
    delegate: Delegate | None = None
    is_in_view: Callable[[str, str], bool] = lambda name, text: False
    cache_folder: Path | None = None
    may_read: Callable[[Path], bool] = lambda path: True
    picture: Callable[[Path], Awaitable[Picture | None]] = no_picture
    judged: frozenset[str] | None = None


class CallsAnother(Protocol):
    """A tool that calls one of many others. The gate judges the one that is meant.

    That one may say in `called_as` how it is called: rules and hooks about that name hold too. A tool that
    takes the other's name has `reaches` besides, which says of a name whether it can be called so.
    """

    def acts_as(self, params: Any) -> "tuple[Tool, Mapping[str, Any]] | ToolResult | None":
        """The tool that is meant and its arguments; a result where that cannot be, None for itself."""
        ...


class Tool(Protocol):
    """A capability offered to the model. `description` is the prompt, from the sibling `.md`.

    `run` is only called with an instance of `params`; implementations annotate that type.
    """

    name: str
    description: str
    params: type[BaseModel]
    access: Access

    async def run(self, params: Any, context: ToolContext) -> ToolResult:
        """Does the work. Expected failures are results with `is_error`, not exceptions."""
        ...
