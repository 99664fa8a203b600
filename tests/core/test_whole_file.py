"""Files that are written as a whole or not at all."""

from pathlib import Path

import pytest

from agent.core.whole_file import write_whole


def test_content_takes_the_place_of_the_old_one_for_the_owner_alone(tmp_path: Path):
    place = tmp_path / "new" / "kept.json"
    write_whole(place, "first")
    write_whole(place, "zweitens: \u00e4")
    assert place.read_bytes() == "zweitens: \u00e4".encode()
    assert (place.stat().st_mode & 0o777, place.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert list(place.parent.iterdir()) == [place]


def test_nothing_is_left_beside_what_cannot_be_replaced(tmp_path: Path):
    place = tmp_path / "kept"
    (place / "in the way").mkdir(parents=True)
    with pytest.raises(OSError, match="kept"):
        write_whole(place, b"bytes")
    assert list(tmp_path.iterdir()) == [place]
