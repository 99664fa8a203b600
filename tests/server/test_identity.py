"""What is known about a process from its number."""

import os
import time

from agent.server.identity import seconds_running

DAY = 24 * 3600.0


def test_the_age_of_a_process_does_not_depend_on_the_clock():
    now = time.time()
    ages = [seconds_running(os.getpid(), started) for started in (now, now - DAY, now + DAY)]
    assert max(ages) - min(ages) < 60
    assert all(0 < age < DAY for age in ages)


def test_of_a_process_that_is_gone_the_clock_is_all_there_is():
    gone = 2**22 + 1  # larger than any process id of Linux
    assert seconds_running(gone, time.time() - 50) >= 50
    assert seconds_running(gone, time.time() + DAY) == 0
