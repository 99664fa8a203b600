"""The contract of what keeps commands in: a sandbox, or nothing."""

from collections.abc import Sequence
from typing import Protocol

from agent.core.errors import AgentError


class ConfinementError(AgentError):
    """A command may only run confined, and that is not possible here."""


class Confinement(Protocol):
    """Wraps the commands of a session, so that they reach no further than they may."""

    async def confined(self, arguments: Sequence[str], *, outlives: bool = False) -> Sequence[str]:
        """The program and arguments to start instead of `arguments`, in the same folder and environment.

        Args:
            outlives: what the command leaves in the background may go on when it has ended.

        Raises:
            ConfinementError: it has to be confined and cannot be.
        """
        ...

    def explanation(self, output: str) -> str:
        """One line about what the sandbox has to do with a failure that printed `output`; else empty."""
        ...


class Unconfined:
    """Commands run as they are: nothing was asked for, or a person typed them."""

    async def confined(self, arguments: Sequence[str], *, outlives: bool = False) -> Sequence[str]:
        return arguments

    def explanation(self, output: str) -> str:
        return ""
