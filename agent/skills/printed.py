"""Commands in the text of a skill or custom command, whose output takes their place: !`git diff`."""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent.core.outside_text import fenced

MOST_COMMANDS = 10

Printing = Callable[[str], Awaitable[str | None]]
"""Runs a command and gives what it printed; None where it was not run."""

_FENCED_OR_COMMAND = re.compile(
    r"^(?P<fence>`{3,}|~{3,}).*?^(?P=fence)[^\n]*$|(?<!\S)!`([^`\n]+)`", re.M | re.S
)


@dataclass(frozen=True, slots=True)
class Piece:
    """Some text, or a command that stands there."""

    text: str
    is_command: bool = False


def pieces_of(text: str) -> Iterator[Piece]:
    """The text in its order. What stands in a block of code, or without a space before it, is an example."""
    at = 0
    for found in _FENCED_OR_COMMAND.finditer(text):
        if found[2] is None:
            continue
        yield Piece(text[at : found.start()])
        yield Piece(found[2].strip(), is_command=True)
        at = found.end()
    yield Piece(text[at:])


def commands_in(text: str) -> list[str]:
    """The commands that stand in a text, each once, at most `MOST_COMMANDS`."""
    found = (piece.text for piece in pieces_of(text) if piece.is_command)
    return list(dict.fromkeys(found))[:MOST_COMMANDS]


def in_place(command: str, outputs: Mapping[str, str]) -> str:
    """What is read where a command stands: what it printed, or only the command where it was not run."""
    if command not in outputs:
        return f"`{command}`"
    return f"`{command}` prints:\n{fenced(outputs[command])}\n"


def with_outputs(text: str, outputs: Mapping[str, str]) -> str:
    """The text with each command replaced. `outputs` is by command; an output is not looked at again."""
    return "".join(
        in_place(piece.text, outputs) if piece.is_command else piece.text for piece in pieces_of(text)
    )


async def outputs_of(commands: Sequence[str], printing: Printing) -> dict[str, str]:
    """What the commands printed, one after the other. One that was not run is left out."""
    outputs: dict[str, str] = {}
    for command in commands:
        text = await printing(command)
        if text is not None:
            outputs[command] = text
    return outputs


async def nothing_is_run(_: str) -> None:
    """For texts whose commands are only shown."""
