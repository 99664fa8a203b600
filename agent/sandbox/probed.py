"""The kinds of sandbox, and what was found out about this machine."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["bubblewrap", "landlock", "seatbelt", "none"]


@dataclass(frozen=True, slots=True)
class Probed:
    """What works. `reasons` says why each better kind does not, one line each."""

    kind: Kind
    program: str = ""
    version: int = 0
    reasons: tuple[str, ...] = ()
