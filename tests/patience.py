"""Times of tests that hold on a machine that is held up at the worst moment."""

PATIENCE_SECONDS = 60.0
"""How long something is waited for that comes at once on an idle machine."""


def limits(seconds: float) -> tuple[float, float, float]:
    """Ever longer limits for a command that has to come so far before its time is up.

    The first is enough on an idle machine; a test goes on to the next only where it was not.
    """
    return seconds, seconds + 3, seconds + 30
