"""Room bookings of one day: which parts of the day are taken, and what is free.

Times are minutes since midnight, and the end of a booking is not part of it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Span:
    start: int
    end: int

    def __post_init__(self) -> None:
        if self.end <= self.start:
            raise ValueError(f"a span must end after {self.start}, not at {self.end}")


def clock(text: str) -> int:
    """Minutes since midnight of a time such as "09:30"."""
    hours, minutes = text.split(":")
    return int(hours) * 60 + int(minutes)


def taken(bookings: list[Span]) -> list[Span]:
    """The bookings as few spans as possible: those that overlap or touch become one."""
    merged: list[Span] = []
    for booking in sorted(bookings):
        if merged and booking.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, booking.end)
        else:
            merged.append(booking)
    return merged


def free(bookings: list[Span], day: Span) -> list[Span]:
    """The gaps of `day` in which nothing is booked."""
    gaps: list[Span] = []
    position = day.start
    for span in taken(bookings):
        if span.start > position:
            gaps.append(Span(position, span.start))
        position = max(position, span.end)
    if position < day.end:
        gaps.append(Span(position, day.end))
    return gaps
