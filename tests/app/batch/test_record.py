"""Ids of batches sort by when they began, so that `--resume-batch last` means the newest."""

from datetime import UTC, datetime, timedelta

import pytest

from agent.app.batch.record import new_id

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)


def test_ids_sort_by_start_even_when_the_clock_goes_back():
    moments = [NOON, NOON, NOON - timedelta(days=3), NOON + timedelta(hours=1), NOON]
    known: list[str] = []
    for moment in moments:
        known.append(new_id(moment, known))
    assert known == sorted(known)
    assert len(set(known)) == len(known)


@pytest.mark.parametrize("strange", ["99991231-235959-ffff", "not-a-batch", "zz"])
def test_an_id_that_nothing_can_come_after_keeps_none_from_beginning(strange: str):
    assert new_id(NOON, [strange]).startswith("20260501-120000-")
