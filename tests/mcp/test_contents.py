"""What is no text of a server's is kept as a file, whole or not at all."""

from pathlib import Path

from agent.mcp.contents import kept_in
from tests.fakes.full_disk import room_for


def test_an_image_is_kept_under_a_name_that_says_what_it_is(tmp_path: Path):
    path = Path(kept_in(tmp_path / "spill")(b"pixels", "image/png"))
    assert (path.suffix, path.read_bytes()) == (".png", b"pixels")


def test_a_file_for_which_there_is_no_room_leaves_no_half_of_it(tmp_path: Path):
    keep = kept_in(tmp_path / "spill")
    with room_for(1000):
        assert keep(b"x" * 4000, "image/png") == ""
    assert list((tmp_path / "spill").iterdir()) == []
