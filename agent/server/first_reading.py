"""How fast this machine reads a model that it has never served, measured before anybody uses the server."""

from contextlib import suppress
from dataclasses import replace

from agent.server.batch_fit import fitted, told
from agent.server.launch import LaunchPlan
from agent.server.probe import reading_rate
from agent.server.reading_speed import reader_of, remember
from agent.server.record import Record

_BATCHES = 2
"""Read for it: enough to see more than the start of one, and a second or two even on a slow machine."""


class BatchTooLargeError(Exception):
    """One batch takes longer here than the profile allows. `plan` is that of a server that fits."""

    def __init__(self, plan: LaunchPlan, why: str) -> None:
        super().__init__(why)
        self.plan = plan


def require_fitting_batch(plan: LaunchPlan, record: Record) -> None:
    """Has a server that is warm read two batches, and keeps the speed for later starts.

    Nothing happens where the profile asks for no fitting, or where the speed is known already.

    Raises:
        BatchTooLargeError: the server should be started again, with `plan` of the error.
        OSError: the server did not answer, or went away.
    """
    profile = plan.profile
    if plan.speeds_file is None or not profile.batch_seconds:
        return
    rate = reading_rate(record, _BATCHES * profile.batch)
    if rate is None:
        return
    # Without it the next start measures once more, which nobody has to be told.
    with suppress(OSError):
        remember(plan.speeds_file, reader_of(profile, plan.threads_used), [rate])
    chosen = fitted(profile, rate)
    if chosen.batch < profile.batch:
        raise BatchTooLargeError(
            replace(plan, profile=chosen, batch_limit=chosen.batch, speeds_file=None),
            told(profile, chosen, rate),
        )
