"""What is known of one source file, in a form that is quick to load by the thousand."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Definition:
    """`depth` counts the types around it; `line` from 1."""

    line: int
    depth: int
    name: str
    signature: str


@dataclass(frozen=True, slots=True)
class Source:
    """What a file defines, and the words in it. `stamp` is its time of change and its size.

    `names` are those of its definitions, `places` their lines, depths and signatures, a line for each. They
    are kept as texts, because of thousands of files only a few are shown.
    """

    stamp: tuple[int, int]
    names: str = ""
    places: str = ""
    words: str = ""

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """In the order of their lines."""
        if not self.names:
            return ()
        rows = (place.split("\t", 2) for place in self.places.split("\n"))
        return tuple(
            Definition(int(line), int(depth), name, signature)
            for name, (line, depth, signature) in zip(self.names.split("\n"), rows, strict=True)
        )


def source_of(stamp: tuple[int, int], found: Iterable[tuple[int, int, str, str]], words: str) -> Source:
    """`found` are line, depth, name and signature of each definition."""
    rows = [
        (line, depth, _in_one_line(name), _in_one_line(signature)) for line, depth, name, signature in found
    ]
    return Source(
        stamp,
        "\n".join(name or "?" for _, _, name, _ in rows),
        "\n".join(f"{line}\t{depth}\t{signature}" for line, depth, _, signature in rows),
        words,
    )


def _in_one_line(text: str) -> str:
    return " ".join(text.split())
