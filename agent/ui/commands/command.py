"""What a slash command is, and what it may use."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from textual.content import Content

from agent.core.handle import SessionFacts, SessionMode
from agent.core.tool import FileDiff
from agent.ui.options import Opening
from agent.ui.plan import Plan
from agent.ui.widgets.menu import Choice

Level = Literal["info", "warning", "error"]


class Host(Protocol):
    """The application, as far as commands know it."""

    @property
    def facts(self) -> SessionFacts | None: ...

    @property
    def last_reply(self) -> str: ...

    @property
    def plan(self) -> Plan: ...

    async def service(self, name: str, /, **arguments: Any) -> Any:
        """A service of the session; raises AgentError."""
        ...

    def tell(self, text: str, level: Level = "info") -> None:
        """Adds a line to the conversation."""
        ...

    def show_page(self, title: str, text: str | Content) -> None: ...

    def show_diffs(self, title: str, diffs: Sequence[FileDiff]) -> None: ...

    async def pick(self, title: str, choices: Sequence[Choice]) -> Choice | None: ...

    async def reopen(self, opening: Opening) -> None:
        """Closes this session and opens another."""
        ...

    async def prepare(self, profile: str) -> bool:
        """Offers to get what the model of `profile` lacks; whether all of it is there in the end."""
        ...

    async def redraw(self) -> None:
        """Shows the conversation anew, as the session has it now."""
        ...

    def give_back(self, text: str) -> None:
        """Puts `text` into the input field."""
        ...

    def ask_model(self, text: str) -> None: ...

    def set_mode(self, mode: SessionMode) -> None: ...

    def copy(self, text: str) -> str:
        """Says how it was copied; empty when it could not be."""
        ...

    def themes(self) -> list[str]: ...

    def use_theme(self, name: str) -> None: ...

    def show_turns(self) -> None: ...

    def key_table(self) -> Sequence[tuple[str, str, str]]: ...

    def quit(self) -> None: ...


Run = Callable[[Host, str], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """`takes` names the argument; `[in brackets]` when it may be left out. `help` is a sentence or two."""

    name: str
    summary: str
    run: Run
    takes: str = ""
    help: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def needs_argument(self) -> bool:
        return bool(self.takes) and not self.takes.startswith("[")

    @property
    def usage(self) -> str:
        return f"/{self.name} {self.takes}".rstrip()
