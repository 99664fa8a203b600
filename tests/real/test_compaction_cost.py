"""What a compaction costs a real server, by its own figures. Its replies are forced, its model is tiny."""

from pathlib import Path

import pytest

from benchmarks.compaction import MOST_BESIDE, Scenario
from benchmarks.compaction_real import built_in, play, small_model

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

SHORT = Scenario("short", pages=5, tokens=700, window=4_096, steps=6)


def test_request_for_a_summary_is_read_behind_what_the_server_has(tmp_path: Path):
    model = small_model(tmp_path, SHORT.window)
    with built_in(model, SHORT.window, tmp_path / "server") as served:
        found = play(SHORT, "constrained", served, tmp_path / "bench")
    assert (found.exit_code, found.refused) == (0, 0)
    [evaluated] = found.summaries
    assert evaluated <= MOST_BESIDE
    # Without a cache each prompt would have been read whole, the last one before the summary among them.
    assert found.evaluated < 2 * found.largest_prompt
