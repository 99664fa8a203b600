"""A command line for a server before it is run: each argument with its reason, and what was noticed."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from agent.server.caps import Capabilities
from agent.server.profile import Profile


@dataclass(frozen=True, slots=True)
class Argument:
    """`value` is None for a switch, `flag` empty for something that stands alone. `comment` is for people."""

    flag: str
    value: str | None = None
    comment: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        value = () if self.value is None else (self.value,)
        return (self.flag, *value) if self.flag else value

    def __str__(self) -> str:
        return shlex.join(self.words)


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that a profile asks for and this server does not do, or not as asked.

    `code` names the kind of problem for programs, `hint` says what to do.
    """

    code: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Command:
    """What would be run. With `refusals` it would fail or do something else than the profile says."""

    program: tuple[str, ...]
    arguments: tuple[Argument, ...] = ()
    warnings: tuple[Notice, ...] = ()
    refusals: tuple[Notice, ...] = ()

    @property
    def argv(self) -> list[str]:
        """Every word, the program first."""
        return [*self.program, *(word for argument in self.arguments for word in argument.words)]

    @property
    def one_line(self) -> str:
        """Quoted for any POSIX shell."""
        return shlex.join(self.argv)

    @property
    def script(self) -> str:
        """For bash: one argument a line, each with its comment."""
        shown = [str(argument) for argument in self.arguments]
        width = min(max(map(len, shown), default=0), 60)
        lines = ["command=(", f"  {shlex.join(self.program)}"]
        for text, argument in zip(shown, self.arguments, strict=True):
            lines.append(f"  {text:<{width}}  # {argument.comment}" if argument.comment else f"  {text}")
        return "\n".join([*lines, ")", '"${command[@]}"']) + "\n"

    def as_table(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {"argv": self.argv, **asdict(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where things are on this machine. None leaves host, port and threads to the profile."""

    program: str = "llama-server"
    target: str = ""
    draft: str = ""
    host: str | None = None
    port: int | None = None
    threads: int = 0


@dataclass
class Builder:
    """Collects the command of one profile for one llama-server."""

    profile: Profile
    capabilities: Capabilities
    places: Places
    arguments: list[Argument] = field(default_factory=list)
    warnings: list[Notice] = field(default_factory=list)
    refusals: list[Notice] = field(default_factory=list)

    @property
    def server(self) -> str:
        return self.capabilities.name

    def given(self, *keys: str) -> bool:
        """Whether the profile, or what it extends, says one of these itself."""
        return any(key in self.profile.model_fields_set for key in keys)

    def add(self, flags: str | Sequence[str], value: object = None, comment: str = "") -> bool:
        """Adds the first spelling that the server knows; False when it knows none."""
        flag = self.capabilities.first(*([flags] if isinstance(flags, str) else flags))
        if flag is None:
            return False
        self.arguments.append(Argument(flag, None if value is None else shown(value), comment))
        return True

    def add_or_warn(
        self, key: str, flags: str | Sequence[str], value: object = None, comment: str = "", effect: str = ""
    ) -> bool:
        """As `add`; where the server has no such flag, a warning named after the profile's key.

        Args:
            effect: what it means that the key is left out.
        """
        if self.add(flags, value, comment):
            return True
        self.warn(key, f"{key} is left out: {self.server} has nothing like it", effect)
        return False

    def allowed(self, flags: str | Sequence[str]) -> tuple[str, ...]:
        """What may follow a flag, empty where that is not known."""
        flag = self.capabilities.first(*([flags] if isinstance(flags, str) else flags))
        return self.capabilities.values.get(flag or "", ())

    def warn(self, code: str, message: str, hint: str = "") -> None:
        self.warnings.append(Notice(code, message, hint))

    def refuse(self, code: str, message: str, hint: str = "") -> None:
        self.refusals.append(Notice(code, message, hint))

    def command(self) -> Command:
        return Command(
            (self.places.program,), tuple(self.arguments), tuple(self.warnings), tuple(self.refusals)
        )


def shown(value: object) -> str:
    """A value as the servers read it."""
    if isinstance(value, list | tuple):
        return ",".join(shown(item) for item in value)
    return str(value)
