"""Until when a job may work."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from agent.app.run.job import Job, TimeIsUpError
from agent.core.limits import TimeLimit


async def test_where_time_is_up_the_error_says_what_to_do_about_what_was_waited_for():
    nothing = cast("Any", None)
    job = Job(
        request=nothing,
        task=nothing,
        workspace=Path("/"),
        serving=nothing,
        output=nothing,
        deadline=TimeLimit(0.001),
    )
    with pytest.raises(TimeIsUpError) as raised:
        await job.in_time(asyncio.Event().wait(), lambda: "`agent server stop` ends that")
    assert raised.value.hint == "`agent server stop` ends that"
