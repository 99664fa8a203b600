"""Markdown as a model writes it: headings, lists, code, tables; every part of it says its number."""

from collections.abc import Iterator

# Tokenizers of today's models make pieces of 3.6 characters of the text below (cl100k).
CHARACTERS_OF_A_TOKEN = 4

SECTION = '''
## Part {n}: what changes

The function `taken_{n}()` merges **only** neighbours that *start* inside the span before it, mark-{n}.
A short booking inside a long one therefore shortens the result, and a room is given away twice.

1. Sort the bookings by their start, then by their end.
2. Walk over them once, and keep the later of both ends.
   - a booking that touches the one before becomes part of it
   - one that lies apart begins a new span

```python
def taken_{n}(bookings: list[Span], day: int = {n}) -> list[Span]:
    """The parts of one day that are taken, in order."""
    result: list[Span] = []
    for span in sorted(bookings):
        if result and span.start <= result[-1].end:  # touches, so it belongs to it
            result[-1] = Span(result[-1].start, max(result[-1].end, span.end))
            continue
        result.append(Span(span.start, span.end))
    return [span for span in result if span.end > {n}]
```

| case {n} | before | after |
|:---|---:|---:|
| inside | 10:30 | 12:00 |
| touching | 12:00 | 12:00 |

> The end of a booking is not part of it, row-{n}.
'''


def text_of(characters: int) -> str:
    parts: list[str] = []
    size = number = 0
    while size < characters:
        parts.append(SECTION.replace("{n}", str(number)))
        size += len(parts[-1])
        number += 1
    return "".join(parts)[:characters]


def marks_of(text: str) -> Iterator[str]:
    """What has to be on the screen's rows in the end: something of each part of the text."""
    for number in range(text.count("## Part")):
        for mark in (f"Part {number}: what", f"mark-{number}.", f"def taken_{number}(", f"row-{number}."):
            if mark in text:
                yield mark
