"""Timers that fire however busy the machine is."""

from textual.message_pump import MessagePump
from textual.timer import Timer, TimerCallback


class SureTimers(MessagePump):
    """To be put before `App` or `Screen`.

    Textual's own timer for one call (textual 0.x to 8.x, `Timer._run`) skips a tick that is overdue, and that
    tick is its only one: when the process was held up between the two looks at the clock, the call never
    comes. A timer that repeats is not concerned: it goes on with its next tick.
    """

    def set_timer(
        self,
        delay: float,
        callback: TimerCallback | None = None,
        *,
        name: str | None = None,
        pause: bool = False,
    ) -> Timer:
        timer = super().set_timer(delay, callback, name=name, pause=pause)
        # Its task does not run before the next await, so this is in time.
        timer._skip = False
        return timer
