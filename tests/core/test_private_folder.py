from pathlib import Path

import pytest

from agent.core.private_folder import make_private_folder


def _mode(folder: Path) -> int:
    return folder.stat().st_mode & 0o777


def test_makes_missing_parents_for_their_owner_only_too(tmp_path: Path) -> None:
    folder = make_private_folder(tmp_path / "state" / "run" / "logs")

    assert [_mode(place) for place in (folder, folder.parent, folder.parent.parent)] == [0o700] * 3


def test_leaves_the_mode_of_a_folder_that_is_there(tmp_path: Path) -> None:
    there = tmp_path / "state"
    there.mkdir()
    there.chmod(0o755)

    make_private_folder(there / "run")
    make_private_folder(there)

    assert _mode(there) == 0o755


def test_says_so_when_a_file_has_the_name_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("", "utf-8")

    with pytest.raises(FileExistsError):
        make_private_folder(tmp_path / "state")
