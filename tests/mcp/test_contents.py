"""What is no text of a server's is kept as a file, whole or not at all."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent.mcp.contents import kept_in


@contextmanager
def room_for(count: int) -> Iterator[None]:
    """No file may become longer, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_an_image_is_kept_under_a_name_that_says_what_it_is(tmp_path: Path):
    path = Path(kept_in(tmp_path / "spill")(b"pixels", "image/png"))
    assert (path.suffix, path.read_bytes()) == (".png", b"pixels")


def test_a_file_for_which_there_is_no_room_leaves_no_half_of_it(tmp_path: Path):
    keep = kept_in(tmp_path / "spill")
    with room_for(1000):
        assert keep(b"x" * 4000, "image/png") == ""
    assert list((tmp_path / "spill").iterdir()) == []
