"""What a session changed, as a diff."""

from pathlib import Path

from agent.session.diffs import session_diff
from tests.session.undo_rig import Run


def test_empty_and_special_files_say_whether_they_were_there(workspace: Path, state: Path) -> None:
    run = Run(state, workspace)
    run.write("empty", b"")
    run.write("binary", b"\xff")
    run.delete("src/a.py")
    shown = session_diff(run.store.folder, workspace)
    run.finish()
    assert shown == (
        "--- /dev/null\n+++ b/empty\nempty file\n"
        "--- /dev/null\n+++ b/binary\nBinary, big or special file: absent -> file\n"
        "--- a/src/a.py\n+++ /dev/null\nBinary, big or special file: file -> absent\n"
    )


def test_new_permissions_alone_are_told(workspace: Path, state: Path) -> None:
    run = Run(state, workspace)
    content = (workspace / "script").read_bytes()
    run.write("script", content, 0o640)
    assert "--- a/script\n+++ b/script\nmode " in session_diff(run.store.folder, workspace)
    run.finish()
