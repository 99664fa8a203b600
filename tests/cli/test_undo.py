"""`agent undo` and `agent session` as a person meets them."""

import argparse
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.cli import session, undo
from agent.cli.columns import cells
from agent.cli.session_list import age, as_table
from agent.core.errors import AgentError, UsageError
from agent.session.catalogue import SessionSummary
from agent.session.ledger import SessionLedger
from agent.session.store import SessionStore

EVENTS = [
    {"type": "user_message", "text": "Fix it\nplease"},
    {"type": "tool_started", "tool": "edit", "arguments": {"path": "a.py"}},
    {"type": "tool_finished", "tool": "edit", "outcome": "ok", "text": "x\n" * 30, "seconds": 0.5},
    {"type": "check_finished", "command": "make test", "passed": False, "text": "boom", "seconds": 1},
    {"type": "assistant_message", "text": "Done \x1b[31mred", "reasoning": "hm"},
    {"type": "something_new", "value": 1},
    {"type": "turn_finished", "reason": "step_limit", "detail": "30 steps"},
    {"type": "result", "exit_code": 3, "reason": "step_limit", "files_changed": ["a.py"], "commit": None},
]


def agent(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    subparsers = parser.add_subparsers(required=True)
    undo.add_parser(subparsers)
    session.add_parser(subparsers)
    parsed = parser.parse_args(arguments)
    return parsed.func(parsed)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGENT_STATE_HOME", str(tmp_path / "state"))
    workspace = tmp_path / "work"
    (workspace / "src").mkdir(parents=True)
    (workspace / "a.py").write_text("old\n", encoding="utf-8")
    monkeypatch.chdir(workspace)
    return workspace


def record_run(workspace: Path, task: str, files: dict[str, str]) -> str:
    with SessionStore.create(workspace.parent / "state", workspace, task=task) as store:
        ledger = SessionLedger(workspace, store.folder)
        for name, text in files.items():
            ledger.before_change(workspace / name)
            (workspace / name).write_text(text, encoding="utf-8")
            ledger.record(workspace / name)
        ledger.close()
        for event in EVENTS:
            store.append(event)
    return store.id


def test_undo_puts_back_names_the_files_and_says_how_to_return(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = record_run(workspace, "x", {"a.py": "new\n", "b.py": "new\n"})
    assert agent("undo") == 0
    out, err = capsys.readouterr()
    assert out == "restored  a.py\ndeleted  b.py\n"
    assert err == f"undid {run} (x); agent undo --redo brings it back\n"
    assert (workspace / "a.py").read_text(encoding="utf-8") == "old\n"
    assert agent("undo", "--redo") == 0
    out, err = capsys.readouterr()
    assert out == "restored  a.py\nrestored  b.py\n"
    assert err == f"brought back {run} (x); agent undo takes it back again\n"
    assert (workspace / "b.py").read_text(encoding="utf-8") == "new\n"


def test_undo_works_from_a_subfolder_and_from_elsewhere(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    record_run(workspace, "x", {"a.py": "new\n"})
    monkeypatch.chdir(workspace / "src")
    agent("undo")
    assert (workspace / "a.py").read_text(encoding="utf-8") == "old\n"
    monkeypatch.chdir(tmp_path)
    agent("undo", "--redo", "-C", "work")
    assert (workspace / "a.py").read_text(encoding="utf-8") == "new\n"


def test_undo_refuses_with_exit_code_1_and_each_file_on_its_line(workspace: Path) -> None:
    record_run(workspace, "x", {"a.py": "new\n", "b.py": "new\n", "c.py": "new\n"})
    for name in ("a.py", "c.py"):
        (workspace / name).write_text("mine\n", encoding="utf-8")
    with pytest.raises(AgentError) as refusal:
        agent("undo")
    assert refusal.value.exit_code == 1
    assert [line.split(":")[0].strip() for line in refusal.value.message.splitlines()[1:]] == ["a.py", "c.py"]
    assert (workspace / "b.py").exists()


def test_a_second_undo_of_the_same_session_has_nothing_to_do(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = record_run(workspace, "x", {"a.py": "new\n"})
    agent("undo", run)
    capsys.readouterr()
    assert agent("undo", run) == 0
    assert capsys.readouterr() == ("", f"every file is already as it was before {run}\n")


def test_the_list_of_undo_says_which_files_are_in_the_way(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = record_run(workspace, "first\ntask", {"a.py": "new\n", "b.py": "new\n"})
    record_run(workspace, "changed nothing", {})
    (workspace / "a.py").write_text("mine\n", encoding="utf-8")
    assert agent("undo", "--list") == 0
    assert capsys.readouterr().out == (
        f"{run}  first task\n    a.py  (somebody else changed it since)\n    b.py\n"
    )
    assert (workspace / "a.py").read_text(encoding="utf-8") == "mine\n"
    (workspace / "a.py").write_text("new\n", encoding="utf-8")
    agent("undo")
    capsys.readouterr()
    assert agent("undo", "--list") == 0
    assert capsys.readouterr().out == f"{run}  first task  (is taken back)\n    a.py\n    b.py\n"


def test_nothing_to_undo_and_an_unknown_session_are_usage_errors(workspace: Path) -> None:
    with pytest.raises(UsageError, match="nothing to undo"):
        agent("undo")
    with pytest.raises(UsageError, match="no session 'nope'"):
        agent("undo", "nope")
    with pytest.raises(UsageError, match="is not a folder"):
        agent("undo", "-C", "nowhere")


def test_programs_get_the_sessions_newest_first_with_tabs_between_or_as_json(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = record_run(workspace, "first task\x1b[2J", {"a.py": "new\n"})
    second = record_run(workspace, "second task", {})
    assert agent("session", "list") == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [(row[0], *row[2:]) for row in rows] == [
        (second, "step limit", "0", "second task"),
        (first, "step limit", "1", "first task\\x1b[2J"),
    ]
    assert agent("session", "list", "--json", "--limit", "1") == 0
    [newest] = json.loads(capsys.readouterr().out)
    assert (newest["id"], newest["started"], newest["result"]) == (second, rows[0][1], "step_limit")
    with pytest.raises(UsageError, match="from 1 on"):
        agent("session", "list", "-n", "0")


def test_list_has_undos_only_where_everything_is_asked_for(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = record_run(workspace, "first task", {"a.py": "new\n"})
    agent("undo")
    agent("undo", "--redo")
    capsys.readouterr()
    agent("session", "list", "-n", "1")
    assert [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()] == [run]
    agent("session", "list", "--json")
    assert [one["kind"] for one in json.loads(capsys.readouterr().out)] == ["undo", "undo", "run"]
    agent("session", "list", "--all")
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_a_person_sees_how_long_ago_a_session_was_in_rows_that_fit() -> None:
    now = datetime(2026, 5, 31, 12, tzinfo=UTC)
    starts = ["2026-05-31T11:59:30+00:00", "2026-05-31T11:15:00+00:00", "2026-05-29T11:00:00+00:00"]
    starts += ["2026-01-02T03:04:05+00:00", "2099-01-01T00:00:00+00:00", "long ago"]
    assert [age(start, now) for start in starts] == ["now", "45 min", "2 d", "2026-01-02", "2099-01-01", ""]
    one = SessionSummary(
        id="20260531-111500-000-abcdef",
        folder=Path("x"),
        kind="run",
        started=starts[1],
        task="do it " * 40,
        profile="",
        result="step_limit",
        files=("a", "b"),
    )
    head, row = as_table([one], 80, now)
    assert head.split() == ["ID", "AGE", "RESULT", "FILES", "TASK"]
    assert row.startswith("20260531-111500-000-abcdef  45 min  step limit  2      do it do it")
    assert len(row) <= 80
    _, wide = as_table([replace(one, task="修复失败的测试" * 40)], 80, now)
    assert 79 <= cells(wide) <= 80


def test_a_session_is_shown_readable_without_terminal_tricks(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = record_run(workspace, "x", {})
    assert agent("session", "show") == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert shown.splitlines()[0] == f"session {run} in {workspace}"
    assert shown.splitlines()[2:] == [
        "> Fix it",
        "> please",
        '• edit {"path": "a.py"}',
        "  ok after 0.5 s",
        *["  | x"] * 12,
        "  | … 18 more lines",
        "check failed after 1.0 s: make test",
        "  | boom",
        "~ hm",
        "Done \\x1b[31mred",
        'something_new {"value": 1}',
        "= step limit: 30 steps",
        "exit code 3",
        "changed: a.py",
    ]


def test_a_session_is_shown_raw_as_it_was_recorded(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = record_run(workspace, "x", {})
    assert agent("session", "show", run, "--raw") == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()][1:] == EVENTS


def test_an_export_to_a_file_of_an_unknown_ending_names_those_there_are(workspace: Path) -> None:
    record_run(workspace, "x", {})
    with pytest.raises(UsageError, match=r"not written as \.pdf") as refusal:
        agent("session", "export", "-o", "talk.pdf")
    assert "the endings are .md (or .txt), .html and .json; --format" in refusal.value.hint
    with pytest.raises(UsageError, match=r"'talk\.html' is no session") as refusal:
        agent("session", "export", "talk.html")
    assert "agent session export -o talk.html" in refusal.value.hint
    assert agent("session", "export", "-o", "talk.pdf", "--format", "json") == 0
    assert [path.name for path in workspace.glob("talk*")] == ["talk.pdf"]


def test_sessions_are_removed_only_if_all_names_are_right(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (record_run(workspace, "x", {}) for _ in range(2))
    with pytest.raises(UsageError, match="no session 'nope'"):
        agent("session", "rm", first, "nope")
    assert agent("session", "rm", first) == 0
    assert capsys.readouterr().out == f"removed  {first}\n"
    agent("session", "list")
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [second]


def test_an_empty_folder_has_no_sessions_to_list_or_show(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert agent("session", "list") == 0
    assert capsys.readouterr().out == ""
    with pytest.raises(UsageError, match="no sessions in"):
        agent("session", "show")


@pytest.mark.parametrize("damage", [b"", b"\0" * 100, b"[1]\nnot json\n{}\n", b'{"type":5,"text":[1]}\n'])
def test_a_damaged_record_is_shown_as_far_as_it_goes(workspace: Path, damage: bytes) -> None:
    run = record_run(workspace, "x", {})
    (record,) = (workspace.parent / "state" / "sessions").glob(f"*/{run}/events.jsonl")
    record.write_bytes(damage)
    assert agent("session", "show") == 0
    assert agent("session", "list") == 0


@pytest.mark.parametrize("named", [(), ("last",)])
@pytest.mark.parametrize("action", ["show", "export"])
def test_last_or_no_id_at_all_means_the_last_run_and_not_its_undo(
    action: str, named: tuple[str, ...], workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record_run(workspace, "the task of the run", {"a.py": "new\n"})
    agent("undo")
    capsys.readouterr()
    assert agent("session", action, *named) == 0
    assert "edit" in capsys.readouterr().out
