"""What can be chosen in `agent setup`: one engine with one profile, and all that it takes."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from agent.app.setup.speed import Speed
from agent.server.install import Wish

FileState = Literal["there", "download", "elsewhere", "by hand"]
Fit = Literal["fits", "tight", "partly", "too big", "not known", "runs elsewhere"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededFile:
    """A model file. `bytes` is what is still to be fetched (0 = nothing, or not known).

    `found` is where another program keeps a file of that name.
    """

    name: str
    state: FileState
    bytes: int = 0
    is_guess: bool = False
    found: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """A server that has to be built or installed first. Minutes are a guess; 0 = less than one.

    `wish` is None for the embedded engine, which is a wheel.
    """

    what: str
    label: str
    wish: Wish | None = None
    low_minutes: float = 0
    high_minutes: float = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why something cannot be done now, and what the person can do about it."""

    message: str
    hint: str
    kind: Literal["tool", "disk", "file", "memory", "profile"] = "tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One way to go. `profile` is the name that will be in the settings.

    `url` and `model` are those of a server that runs already, for which a profile is written. `need` is its
    memory in bytes, 0 = not known; `need_is_rough` says that it follows from file sizes alone. `why` is for
    people: why it is proposed.
    """

    profile: str
    title: str
    engine: str
    program: str
    url: str = ""
    model: str = ""
    fit: Fit = "not known"
    need: int = 0
    need_is_rough: bool = False
    room: int = 0
    on_gpu: bool = False
    files: tuple[NeededFile, ...] = ()
    build: Build | None = None
    speed: Speed | None = None
    obstacles: tuple[Obstacle, ...] = ()
    notes: tuple[str, ...] = field(default=())
    why: str = ""

    @property
    def is_usable(self) -> bool:
        return not self.obstacles

    @property
    def runs_elsewhere(self) -> bool:
        return bool(self.url)

    @property
    def download_bytes(self) -> int:
        return sum(file.bytes for file in self.files if file.state == "download")

    @property
    def disk_bytes(self) -> int:
        """What it takes on disk for the time of the set-up, build tree included."""
        return self.download_bytes + (self.build.bytes if self.build else 0)
