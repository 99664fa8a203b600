"""Creating, writing and finding session records."""

import errno
import fcntl
import os
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent.core.errors import UsageError
from agent.session.catalogue import (
    find_session,
    find_workspace,
    prune,
    remove_session,
    session_folders,
    summarise,
)
from agent.session.store import (
    EVENTS_NAME,
    Machine,
    SessionStore,
    is_active,
    is_session_id,
    load,
    redact,
    secrets_in,
    sessions_folder,
)

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)

CREATOR = """
import sys
from pathlib import Path
from agent.session.store import SessionStore
for _ in range(30):
    with SessionStore.create(Path(sys.argv[1]), Path(sys.argv[2])) as store:
        store.append({"type": "mark", "id": store.id})
"""


def finished_sessions(state: Path, workspace: Path, count: int) -> list[str]:
    """Ids, oldest first."""
    ids = []
    for number in range(count):
        with SessionStore.create(state, workspace, task=f"task {number}") as store:
            store.append({"type": "turn_finished", "reason": "done"})
            ids.append(store.id)
    return ids


def test_the_first_line_says_what_the_session_is(tmp_path: Path) -> None:
    with SessionStore.create(
        tmp_path / "state", tmp_path, profile="embedded", task="fix it", machine=Machine(now=lambda: NOON)
    ) as store:
        store.append({"type": "notice", "text": "hello"})
    header, event = load(store.path)
    assert header == {
        "type": "session",
        "format": 2,
        "id": store.id,
        "workspace": str(tmp_path),
        "started": "2026-05-01T12:00:00.000+00:00",
        "profile": "embedded",
        "task": "fix it",
        "kind": "run",
    }
    assert event == {"type": "notice", "text": "hello"}


def test_only_the_owner_can_look_into_a_session(tmp_path: Path) -> None:
    with SessionStore.create(tmp_path / "state", tmp_path) as store:
        assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700
        assert stat.S_IMODE(store.path.stat().st_mode) == 0o600


def test_ids_sort_by_start_even_when_the_clock_goes_back(tmp_path: Path) -> None:
    moments = [NOON, NOON, NOON - timedelta(days=3), NOON + timedelta(milliseconds=1), NOON]
    ids = []
    for moment in moments:
        with SessionStore.create(tmp_path, tmp_path, machine=Machine(now=lambda now=moment: now)) as store:
            ids.append(store.id)
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)
    assert all(is_session_id(name) for name in ids)


def test_pruning_after_the_clock_was_set_back_removes_what_was_begun_first(tmp_path: Path) -> None:
    moments = [NOON, NOON + timedelta(days=400), NOON, NOON - timedelta(days=30), NOON]
    ids = []
    for moment in moments:
        with SessionStore.create(tmp_path, tmp_path, machine=Machine(now=lambda now=moment: now)) as store:
            ids.append(store.id)
    assert prune(tmp_path, tmp_path, most_sessions=2, always_kept=1) == ids[:3][::-1]
    assert [folder.name for folder in session_folders(tmp_path, tmp_path)] == ids[:2:-1]


def test_sessions_go_on_after_a_clock_that_showed_the_end_of_time(tmp_path: Path) -> None:
    last = datetime.max.replace(tzinfo=UTC)
    for moment in (last, last, NOON):
        with SessionStore.create(tmp_path, tmp_path, machine=Machine(now=lambda now=moment: now)) as store:
            assert load(store.path)[0]["started"] == moment.isoformat(timespec="milliseconds")
    assert len(session_folders(tmp_path, tmp_path)) == 3


def test_processes_that_start_together_do_not_share_a_session(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CREATOR, str(tmp_path / "state"), str(tmp_path)]
    writers = [subprocess.Popen(command) for _ in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    folders = session_folders(tmp_path / "state", tmp_path)
    assert len(folders) == 90
    for folder in folders:
        header, mark = load(folder / "events.jsonl")
        assert header["id"] == mark["id"] == folder.name


def test_a_full_disk_is_reported_once_and_does_not_stop_the_run(tmp_path: Path) -> None:
    def full(_descriptor: int, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    reports: list[str] = []
    with SessionStore.create(
        tmp_path / "state", tmp_path, report=reports.append, machine=Machine(write=full)
    ) as store:
        store.append({"type": "notice"})
        store.append({"type": "notice"})
    assert len(reports) == 1
    assert "No space left on device" in reports[0]
    assert str(store.path) in reports[0]


def test_a_record_that_json_cannot_hold_is_reported_not_raised(tmp_path: Path) -> None:
    endless: dict = {}
    endless["self"] = endless
    reports: list[str] = []
    with SessionStore.create(tmp_path / "state", tmp_path, report=reports.append) as store:
        store.append(endless)
        store.append({"type": "next"})
    assert len(reports) == 1
    assert load(store.path)[-1] == {"type": "next"}


def test_a_state_folder_that_is_a_file_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    with pytest.raises(UsageError, match="cannot start a session in"):
        SessionStore.create(tmp_path / "state", tmp_path)


def test_secrets_reach_neither_values_nor_keys_nor_the_task(tmp_path: Path) -> None:
    secret = 'sk-"é"-123456'
    with SessionStore.create(tmp_path / "state", tmp_path, task=f"use {secret}", secrets=[secret]) as store:
        store.append({"type": "x", secret: [f"Bearer {secret}", {"deep": secret}]})
    header, event = load(store.path)
    assert header["task"] == "use [redacted]"
    assert event == {"type": "x", "[redacted]": ["Bearer [redacted]", {"deep": "[redacted]"}]}


def test_a_longer_secret_is_replaced_before_a_shorter_one_inside_it() -> None:
    assert redact("abcdef-ghijkl", ["abcdef", "abcdef-ghijkl"]) == "[redacted]"


def test_short_and_empty_secrets_do_not_eat_the_text() -> None:
    assert redact("an old key", ["", "key", "n"]) == "an old key"


def test_secrets_of_an_environment_are_found_by_name() -> None:
    environment = {
        "MY_API_KEY": "abcdefgh",
        "HOME": "/home/me",
        "HF_TOKEN": "hf_12345",
        "EMPTY_KEY": "",
        "KEY_FILE": __file__,
    }
    assert secrets_in(environment) == ("abcdefgh", "hf_12345")


def test_a_session_is_found_by_the_beginning_or_the_end_of_its_id(tmp_path: Path) -> None:
    first, second = finished_sessions(tmp_path / "state", tmp_path, 2)
    assert find_session(tmp_path / "state", tmp_path, first).name == first
    assert find_session(tmp_path / "state", tmp_path, second[-6:]).name == second
    with pytest.raises(UsageError, match="2 sessions match"):
        find_session(tmp_path / "state", tmp_path, first[:8])
    with pytest.raises(UsageError, match="no session 'nope'"):
        find_session(tmp_path / "state", tmp_path, "nope")


def test_a_subfolder_belongs_to_the_workspace_above_it(tmp_path: Path) -> None:
    workspace, inside = tmp_path / "work", tmp_path / "work" / "src"
    inside.mkdir(parents=True)
    assert find_workspace(tmp_path / "state", inside) == inside
    finished_sessions(tmp_path / "state", workspace, 1)
    assert find_workspace(tmp_path / "state", inside) == workspace


def test_a_summary_tells_task_and_result(tmp_path: Path) -> None:
    finished_sessions(tmp_path / "state", tmp_path, 1)
    summary = summarise(session_folders(tmp_path / "state", tmp_path)[0])
    assert (summary.task, summary.result, summary.kind, summary.files) == ("task 0", "done", "run", ())


def test_a_summary_of_a_damaged_session_is_empty_not_an_error(tmp_path: Path) -> None:
    finished_sessions(tmp_path / "state", tmp_path, 1)
    folder = session_folders(tmp_path / "state", tmp_path)[0]
    (folder / "events.jsonl").write_bytes(b"\0\0\0{")
    assert summarise(folder).result == "not finished"
    (folder / "events.jsonl").unlink()
    assert summarise(folder).task == ""


def test_a_running_session_is_known_and_not_removed(tmp_path: Path) -> None:
    store = SessionStore.create(tmp_path / "state", tmp_path)
    assert is_active(store.folder)
    assert summarise(store.folder).result == "running"
    with pytest.raises(UsageError, match="still running"):
        remove_session(store.folder)
    store.close()
    assert not is_active(store.folder)
    remove_session(store.folder)
    assert not store.folder.exists()


def test_pruning_keeps_a_number_of_the_newest(tmp_path: Path) -> None:
    ids = finished_sessions(tmp_path / "state", tmp_path, 8)
    removed = prune(tmp_path / "state", tmp_path, most_sessions=5, always_kept=2)
    assert sorted(removed) == ids[:3]
    assert [folder.name for folder in session_folders(tmp_path / "state", tmp_path)] == ids[:2:-1]


def test_pruning_by_size_never_takes_the_newest_or_a_running_one(tmp_path: Path) -> None:
    running = SessionStore.create(tmp_path / "state", tmp_path)
    ids = finished_sessions(tmp_path / "state", tmp_path, 6)
    removed = prune(tmp_path / "state", tmp_path, most_bytes=1, always_kept=2)
    running.close()
    assert sorted(removed) == ids[:4]
    assert running.folder.exists()


def test_pruning_leaves_what_is_not_a_session(tmp_path: Path) -> None:
    ids = finished_sessions(tmp_path / "state", tmp_path, 2)
    stranger = sessions_folder(tmp_path / "state", tmp_path) / "notes"
    stranger.mkdir()
    removed = prune(tmp_path / "state", tmp_path, most_sessions=0, always_kept=0)
    assert sorted(removed) == ids
    assert stranger.is_dir()
    with pytest.raises(UsageError, match="is not a session"):
        remove_session(stranger)


def test_a_look_of_another_program_does_not_count_as_one_that_has_the_session_open(tmp_path: Path):
    """Lists of sessions take a shared lock for a moment, to see whether a session is alive."""
    with SessionStore.create(tmp_path / "state", tmp_path) as first:
        folder = first.folder
    with (folder / EVENTS_NAME).open("rb") as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        store = SessionStore(
            folder, (), None, os.write, exclusive=False, pause=lambda _: fcntl.flock(looking, fcntl.LOCK_UN)
        )
    assert is_active(folder)
    store.close()
