"""What a session knows about files: seen versions, originals, changes of its own and of others."""

import os
import stat
from pathlib import Path

import pytest

from agent.core.errors import AgentError, UsageError
from agent.core.tool import FileLedger
from agent.session.kept import contents_of, load_kept
from agent.session.ledger import SessionLedger
from agent.session.states import state_of


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.py").write_text("one\n", encoding="utf-8")
    return tmp_path / "work"


@pytest.fixture
def session(tmp_path: Path) -> Path:
    (tmp_path / "session").mkdir()
    return tmp_path / "session"


@pytest.fixture
def ledger(workspace: Path, session: Path):
    ledger = SessionLedger(workspace, session)
    yield ledger
    ledger.close()


def change(ledger: SessionLedger, path: Path, text: str) -> None:
    ledger.before_change(path)
    path.write_text(text, encoding="utf-8")
    ledger.record(path)


def test_it_is_the_ledger_that_tools_expect(ledger: SessionLedger) -> None:
    expected: FileLedger = ledger
    assert expected.seen(Path("a.py")) is None


def test_a_file_is_seen_once_recorded(ledger: SessionLedger, workspace: Path) -> None:
    ledger.record(workspace / "a.py")
    version = ledger.seen(Path("a.py"))
    assert version is not None
    assert version.size == 4


def test_a_file_is_stale_when_its_content_changed_even_with_the_old_time_and_size(
    ledger: SessionLedger, workspace: Path
) -> None:
    path = workspace / "a.py"
    ledger.record(path)
    status = path.stat()
    path.write_text("two\n", encoding="utf-8")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert ledger.is_stale(path)


def test_a_touched_file_with_the_same_content_is_not_stale(ledger: SessionLedger, workspace: Path) -> None:
    ledger.record(workspace / "a.py")
    os.utime(workspace / "a.py", (1, 1))
    assert not ledger.is_stale(workspace / "a.py")


def test_a_deleted_file_is_stale_and_a_file_never_seen_is_not(ledger: SessionLedger, workspace: Path) -> None:
    ledger.record(workspace / "a.py")
    (workspace / "a.py").unlink()
    assert ledger.is_stale(workspace / "a.py")
    assert not ledger.is_stale(workspace / "b.py")


def test_a_file_outside_can_be_seen_but_not_changed(ledger: SessionLedger, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("x", encoding="utf-8")
    ledger.record(outside)
    assert ledger.seen(outside) is not None
    with pytest.raises(UsageError, match="outside of the workspace"):
        ledger.before_change(outside)
    with pytest.raises(UsageError, match="outside of the workspace"):
        ledger.before_change(Path("../outside.txt"))


def test_a_link_that_leads_outside_is_not_taken_for_a_file_inside(
    ledger: SessionLedger, workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside.txt").touch()
    (workspace / "link").symlink_to(tmp_path / "outside.txt")
    with pytest.raises(UsageError, match="outside of the workspace"):
        ledger.before_change(workspace / "link")


def test_only_the_first_version_is_kept(ledger: SessionLedger, workspace: Path, session: Path) -> None:
    for text in ("two\n", "three\n", "four\n"):
        change(ledger, workspace / "a.py", text)
    kept = load_kept(session)["a.py"]
    assert contents_of(session).path_of(kept.original.content).read_bytes() == b"one\n"
    assert len([path for path in (session / "before").iterdir() if path.name != "index.jsonl"]) == 1


def test_nothing_is_written_before_the_first_change(
    ledger: SessionLedger, workspace: Path, session: Path
) -> None:
    ledger.record(workspace / "a.py")
    assert list(session.iterdir()) == []


def test_originals_are_for_the_owner_only(ledger: SessionLedger, workspace: Path, session: Path) -> None:
    change(ledger, workspace / "a.py", "two\n")
    assert stat.S_IMODE((session / "before").stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in (session / "before").iterdir()} == {0o600}


def test_changed_files_are_those_that_differ_from_their_original_now(
    ledger: SessionLedger, workspace: Path
) -> None:
    change(ledger, workspace / "b.py", "new\n")
    change(ledger, workspace / "a.py", "two\n")
    assert ledger.changed_files() == (workspace / "b.py", workspace / "a.py")
    change(ledger, workspace / "a.py", "one\n")
    assert ledger.changed_files() == (workspace / "b.py",)


def test_one_file_under_two_names_is_kept_once(ledger: SessionLedger, workspace: Path, session: Path) -> None:
    (workspace / "src").mkdir()
    (workspace / "alias").symlink_to("src")
    change(ledger, workspace / "src" / "b.py", "1\n")
    change(ledger, workspace / "alias" / ".." / "alias" / "b.py", "2\n")
    assert list(load_kept(session)) == ["src/b.py"]


def test_a_way_up_out_of_a_linked_folder_is_followed_as_the_system_does(
    ledger: SessionLedger, workspace: Path, session: Path
) -> None:
    (workspace / "deep" / "real").mkdir(parents=True)
    (workspace / "alias").symlink_to("deep/real")
    change(ledger, workspace / "alias" / ".." / "b.py", "1\n")
    assert list(load_kept(session)) == ["deep/b.py"]


def test_a_link_is_kept_as_a_link_together_with_its_target(
    ledger: SessionLedger, workspace: Path, session: Path
) -> None:
    (workspace / "link").symlink_to("a.py")
    change(ledger, workspace / "link", "two\n")
    kept = load_kept(session)
    assert (kept["link"].original.kind, kept["link"].original.content) == ("link", "a.py")
    assert kept["a.py"].original.kind == "file"
    assert ledger.changed_files() == (workspace / "a.py",)


def test_reading_again_does_not_make_somebody_elses_change_ours(
    ledger: SessionLedger, workspace: Path, session: Path
) -> None:
    change(ledger, workspace / "a.py", "two\n")
    (workspace / "a.py").write_text("theirs\n", encoding="utf-8")
    ledger.record(workspace / "a.py")
    assert ledger.foreign_files() == (workspace / "a.py",)
    change(ledger, workspace / "a.py", "three\n")
    assert ledger.foreign_files() == (workspace / "a.py",)
    assert load_kept(session)["a.py"].foreign


def test_what_somebody_else_wrote_in_between_is_kept(
    ledger: SessionLedger, workspace: Path, session: Path
) -> None:
    change(ledger, workspace / "a.py", "two\n")
    (workspace / "a.py").write_text("theirs\n", encoding="utf-8")
    change(ledger, workspace / "a.py", "three\n")
    kept = [path.read_bytes() for path in (session / "before").iterdir()]
    assert b"theirs\n" in kept


def test_a_command_of_ours_may_change_our_files(ledger: SessionLedger, workspace: Path) -> None:
    change(ledger, workspace / "a.py", "two\n")
    with ledger.own_changes():
        (workspace / "a.py").write_text("two  # formatted\n", encoding="utf-8")
    assert ledger.foreign_files() == ()


def test_a_command_of_ours_does_not_take_over_what_somebody_changed_before_it(
    ledger: SessionLedger, workspace: Path
) -> None:
    change(ledger, workspace / "a.py", "two\n")
    (workspace / "a.py").write_text("theirs\n", encoding="utf-8")
    with ledger.own_changes():
        (workspace / "a.py").write_text("formatted\n", encoding="utf-8")
    assert ledger.foreign_files() == (workspace / "a.py",)


def test_rolling_back_gives_a_fresh_start_and_is_undone_like_anything_else(
    ledger: SessionLedger, workspace: Path, session: Path
) -> None:
    change(ledger, workspace / "a.py", "two\n")
    (workspace / "new").mkdir()
    ledger.before_change(workspace / "new" / "b.py")
    change(ledger, workspace / "new" / "b.py", "b\n")
    assert set(ledger.roll_back()) == {workspace / "a.py", workspace / "new" / "b.py"}
    assert (workspace / "a.py").read_bytes() == b"one\n"
    assert not (workspace / "new" / "b.py").exists()
    assert ledger.seen(workspace / "a.py") is None
    assert ledger.changed_files() == ledger.foreign_files() == ()
    change(ledger, workspace / "a.py", "three\n")
    assert ledger.changed_files() == (workspace / "a.py",)
    assert ledger.roll_back() == (workspace / "a.py",)


def test_rolling_back_removes_the_folders_that_were_made(ledger: SessionLedger, workspace: Path) -> None:
    ledger.before_change(workspace / "new" / "deep" / "b.py")
    (workspace / "new" / "deep").mkdir(parents=True)
    (workspace / "new" / "deep" / "b.py").touch()
    ledger.record(workspace / "new" / "deep" / "b.py")
    ledger.roll_back()
    assert not (workspace / "new").exists()


def test_rolling_back_leaves_what_somebody_else_changed(ledger: SessionLedger, workspace: Path) -> None:
    change(ledger, workspace / "a.py", "two\n")
    (workspace / "a.py").write_text("theirs\n", encoding="utf-8")
    assert ledger.roll_back() == ()
    assert (workspace / "a.py").read_bytes() == b"theirs\n"


def test_a_tool_that_does_not_record_is_still_understood(
    ledger: SessionLedger, workspace: Path, session: Path
) -> None:
    for text in ("two\n", "three\n"):
        ledger.before_change(workspace / "a.py")
        (workspace / "a.py").write_text(text, encoding="utf-8")
    ledger.record(workspace / "a.py")
    assert not load_kept(session)["a.py"].foreign
    assert load_kept(session)["a.py"].result is not None


def test_a_change_is_refused_when_its_original_cannot_be_kept(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "session").touch()
    ledger = SessionLedger(workspace, tmp_path / "session")
    with pytest.raises(AgentError, match=r"cannot keep the original of .*a\.py"):
        ledger.before_change(workspace / "a.py")


def test_bookkeeping_that_fails_after_a_change_is_reported_not_raised(workspace: Path, session: Path) -> None:
    reports: list[str] = []
    ledger = SessionLedger(workspace, session, report=reports.append)
    ledger.before_change(workspace / "a.py")
    ledger.close()
    (session / "before" / "index.jsonl").unlink()
    (session / "before" / "index.jsonl").mkdir()
    (workspace / "a.py").write_text("two\n", encoding="utf-8")
    ledger.record(workspace / "a.py")
    assert len(reports) == 1
    assert "undo will not cover a.py" in reports[0]


def test_a_folder_is_not_a_file_to_change(ledger: SessionLedger, workspace: Path) -> None:
    (workspace / "folder").mkdir()
    with pytest.raises(UsageError, match="not a regular file"):
        ledger.before_change(workspace / "folder")


def test_a_resumed_session_still_knows_its_first_originals(
    ledger: SessionLedger, workspace: Path, session: Path
) -> None:
    change(ledger, workspace / "a.py", "two\n")
    ledger.close()
    with (session / "before" / "index.jsonl").open("ab") as index:
        index.write(b'{"do":"keep","path":"torn')
    resumed = SessionLedger(workspace, session)
    change(resumed, workspace / "a.py", "three\n")
    resumed.close()
    kept = load_kept(session)["a.py"]
    assert contents_of(session).path_of(kept.original.content).read_bytes() == b"one\n"
    assert not kept.foreign
    assert kept.result == state_of(workspace / "a.py")


def test_a_file_name_that_is_not_utf8_is_kept(ledger: SessionLedger, workspace: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(workspace) + b"/caf\xe9.txt"))
    change(ledger, path, "x\n")
    assert ledger.changed_files() == (path,)
