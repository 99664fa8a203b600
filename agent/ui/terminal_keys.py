"""Keys that terminals send and Textual does not know by itself."""

from enum import Enum
from typing import Any, cast

from textual._ansi_sequences import ANSI_SEQUENCES_KEYS


class ExtraKey(Enum):
    ALT_ENTER = "alt+enter"


SEQUENCES: dict[str, tuple[ExtraKey, ...]] = {
    # What nearly every terminal, and tmux, sends for Alt with Enter; Textual drops the Alt.
    "\x1b\r": (ExtraKey.ALT_ENTER,),
    "\x1b\n": (ExtraKey.ALT_ENTER,),
}


def teach() -> None:
    """Adds the sequences to Textual's table, which it offers no other way to extend."""
    cast("dict[str, Any]", ANSI_SEQUENCES_KEYS).update(SEQUENCES)
