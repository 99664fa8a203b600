"""How often what came is shown."""

FRAME_SECONDS = 1 / 12
"""Shortest time between two flushes."""
_FIRST_SECONDS = 0.01  # until what comes after a pause is shown
_SHARE_OF_TIME = 4  # a flush that took long is followed by this many times its own time without one


class Pace:
    """Times are seconds of one clock that only goes forward."""

    def __init__(self) -> None:
        self._flushed_at = 0.0
        self._took = 0.0

    def pause_from(self, now: float) -> float:
        """Seconds to wait with the next flush."""
        due = self._flushed_at + max(FRAME_SECONDS, _SHARE_OF_TIME * self._took)
        return max(due - now, _FIRST_SECONDS)

    def note(self, began: float, ended: float) -> None:
        self._flushed_at, self._took = ended, ended - began
