"""Files of a stranger's folder are read to an end, whatever they are."""

import errno
import os
from pathlib import Path

import pytest

from agent.core.regular_file import read_regular


def test_a_file_is_read_also_through_a_link(tmp_path: Path):
    (tmp_path / "a").write_bytes(b"content")
    (tmp_path / "link").symlink_to("a")
    assert read_regular(tmp_path / "link", 7) == b"content"


@pytest.mark.parametrize("target", ["/dev/zero", "pipe", ".", "loop"])
def test_what_has_no_end_or_no_content_is_an_error(tmp_path: Path, target: str):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(OSError, match=r"regular|directory|levels"):
        read_regular(tmp_path / "link")


def test_a_file_over_the_limit_is_an_error_that_says_so(tmp_path: Path):
    (tmp_path / "a").write_bytes(b"content")
    with pytest.raises(OSError, match="too large") as caught:
        read_regular(tmp_path / "a", 6)
    assert caught.value.errno == errno.EFBIG
