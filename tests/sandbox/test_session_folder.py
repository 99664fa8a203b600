"""Folders of sandboxes whose program was killed are removed by the next one, and no others."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from agent.sandbox.session_folder import OWNER_NAME, PREFIX, SessionFolder, remove_abandoned

ROOT = Path(__file__).parents[2]
LIVING = """
import sys
from pathlib import Path
from agent.sandbox.session_folder import SessionFolder
folder = SessionFolder(Path(sys.argv[1]))
print(folder.path, flush=True)
sys.stdin.read()
"""


def living(parent: Path) -> tuple["subprocess.Popen[str]", Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", LIVING, str(parent)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def end(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_a_folder_of_a_killed_program_is_removed_by_the_next(tmp_path: Path):
    process, folder = living(tmp_path)
    locked_away = folder / "tmp" / "cache"
    locked_away.mkdir(parents=True)
    (locked_away / "file").write_text("x", encoding="utf-8")
    locked_away.chmod(0o500)
    end(process)
    assert folder.is_dir()
    assert remove_abandoned(tmp_path) == [folder]
    assert not folder.exists()


def test_a_folder_that_is_in_use_stays(tmp_path: Path):
    process, folder = living(tmp_path)
    own = SessionFolder(tmp_path)
    try:
        assert remove_abandoned(tmp_path) == []
        assert folder.is_dir()
        assert own.path.is_dir()
    finally:
        end(process)
        own.remove()
    assert not own.path.exists()


def test_what_only_looks_like_one_stays(tmp_path: Path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / OWNER_NAME).touch()
    (tmp_path / f"{PREFIX}link").symlink_to(elsewhere)
    (tmp_path / f"{PREFIX}file").touch()
    (tmp_path / f"{PREFIX}new").mkdir()  # somebody is just making it
    fifo = tmp_path / f"{PREFIX}fifo"
    fifo.mkdir()
    (fifo / OWNER_NAME).symlink_to(elsewhere / OWNER_NAME)
    assert remove_abandoned(tmp_path) == []
    assert len(list(tmp_path.iterdir())) == 5
    assert (elsewhere / OWNER_NAME).exists()


def test_a_folder_of_an_earlier_version_is_removed_when_it_is_a_day_old(tmp_path: Path):
    old = tmp_path / f"{PREFIX}old"
    (old / "tmp").mkdir(parents=True)
    os.utime(old, (0, 0))
    assert remove_abandoned(tmp_path) == [old]


def test_links_in_an_abandoned_folder_are_not_followed(tmp_path: Path):
    process, folder = living(tmp_path)
    kept = tmp_path / "kept"
    kept.mkdir(mode=0o500)
    (folder / "link").symlink_to(kept)
    end(process)
    remove_abandoned(tmp_path)
    assert kept.stat().st_mode & 0o777 == 0o500


def test_a_folder_of_another_user_stays(tmp_path: Path):
    foreign = tmp_path / f"{PREFIX}foreign"
    foreign.mkdir()
    os.utime(foreign, (0, 0))
    if os.geteuid() == 0:
        os.chown(foreign, 65534, 65534)
        assert remove_abandoned(tmp_path) == []
    else:  # nobody else's could be made here
        assert remove_abandoned(tmp_path) == [foreign]


def test_a_folder_goes_with_the_object(tmp_path: Path):
    path = SessionFolder(tmp_path).path
    assert not path.exists()
