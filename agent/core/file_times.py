"""When files were changed last, for those who keep only the newest."""

from pathlib import Path


def last_change(path: Path, now: float) -> float:
    """In seconds since 1970; 0 for a file that is gone, or of a time that is still to come.

    Such a file is from before the clock was set back. It would count as the newest until its time has come,
    and be kept in the place of everything new.

    Args:
        now: the present time, in seconds since 1970.
    """
    try:
        changed = path.stat().st_mtime
    except OSError:
        return 0.0
    return changed if changed <= now + _LAG_SECONDS else 0.0


_LAG_SECONDS = 60.0
"""File systems of other machines have clocks of their own."""
