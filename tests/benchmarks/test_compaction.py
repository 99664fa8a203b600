"""Sessions that outgrow their context window keep to the figures that are told of them."""

from pathlib import Path

import pytest

from benchmarks import session12
from benchmarks.compaction import FILL, STEPS, Figures, Scenario, play, table
from benchmarks.scenario12 import Protocol


@pytest.mark.slow
@pytest.mark.parametrize(("scenario", "protocol"), [(FILL, "native"), (STEPS, "constrained")])
def test_a_session_that_outgrows_its_window_costs_little(
    scenario: Scenario, protocol: Protocol, tmp_path: Path
):
    found = play(scenario, protocol, session12.make_bench(tmp_path))
    assert found.holds, found
    assert found.summaries


def test_a_row_says_whether_the_limits_hold():
    good = Figures("fill", "native", 0, 13, 0, 23_000, 42_000, (340,), 41_000, 22_000)
    bad = Figures("steps", "native", 0, 106, 0, 6_700, 36_000, (340, 501), 31_000, 4_800)
    first, second = table([good, bad]).splitlines()[2:]
    assert first.endswith("| 42,000 | 1 | 340 | 22,000 | yes |")
    assert second.endswith("| 501 | 4,800 | no |")
