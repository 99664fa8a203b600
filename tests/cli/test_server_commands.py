"""`agent server`, `agent model` and `agent profile`, as far as they go without a model."""

import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.cli.main import run
from agent.cli.progress import DownloadBar, ProgressLine
from agent.core.errors import ExitCode
from agent.server.identity import process_identity
from agent.server.record import Record, list_records, write_record

CONTENT = b"model " * 100


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders of a person who has done nothing yet, and a project that is nowhere near another one."""
    for kind in ("CONFIG", "STATE", "DATA", "CACHE"):
        monkeypatch.setenv(f"AGENT_{kind}_HOME", str(tmp_path / kind.lower()))
    for name in ("AGENT_MODELS_FOLDER", "AGENT_PROFILE", "AGENT_SERVER_URL"):
        monkeypatch.delenv(name, raising=False)
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    monkeypatch.chdir(project)
    return tmp_path


@pytest.fixture
def tiny(home: Path) -> Path:
    """A profile `tiny` whose model file lies on disk; the path of that file."""
    copy = home / "copy.gguf"
    copy.write_bytes(CONTENT)
    profiles = home / "config" / "profiles"
    profiles.mkdir(parents=True)
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    (profiles / "tiny.toml").write_text(
        'description = "for tests"\n[target]\n'
        f'file = "{copy}"\nsha256 = "{sha256}"\nbytes = {len(CONTENT)}\n',
        "utf-8",
    )
    return copy


def test_status_without_a_server_is_exit_code_1(home: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["server", "status"]) == 1
    assert "agent server start" in capsys.readouterr().err


def test_status_names_the_server_of_somebody_else_that_the_settings_use(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("AGENT_SERVER_URL", "http://box:8080")
    assert run(["server", "status"]) == 1
    said = capsys.readouterr().err
    assert "http://box:8080" in said
    assert "agent server start" not in said


def test_status_as_json_without_a_server_is_an_empty_list(home: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["server", "status", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == []


def test_stop_without_a_server_is_no_error(home: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["server", "stop"]) == 0
    assert "no server was running" in capsys.readouterr().err


def test_server_that_hangs_is_shown_and_stopped(home: Path, capsys: pytest.CaptureFixture[str]):
    folder = home / "state" / "run"
    folder.mkdir(parents=True)
    spec = folder / "server-f.spec.json"
    command = [sys.executable, "-c", "import signal; signal.pause()", str(spec)]
    child = subprocess.Popen(command)
    record = Record(
        pid=child.pid,
        identity=process_identity(child.pid) or "",
        port=1,
        profile="embedded",
        fingerprint="f",
        state="ready",
        key_file=str(folder / "key"),
        spec_file=str(spec),
        log_file=str(home / "log"),
        started=time.time(),
        context_tokens=2048,
    )
    write_record(record, folder)
    try:
        assert run(["server", "status"]) == 0
        assert f"embedded: not answering, process {child.pid}" in capsys.readouterr().out
        assert run(["server", "stop", "embedded-small"]) == 0
        assert process_identity(child.pid) is not None
        assert run(["server", "stop"]) == 0
        assert f"embedded: stopped (process {child.pid})" in capsys.readouterr().err
        assert list_records(folder) == []
        assert process_identity(child.pid) is None
    finally:
        if process_identity(child.pid):
            os.kill(child.pid, signal.SIGKILL)
        child.wait()


@pytest.mark.parametrize("action", ["stop", "logs"])
def test_an_unknown_profile_is_bad_usage_with_what_was_meant(
    action: str, home: Path, capsys: pytest.CaptureFixture[str]
):
    assert run(["server", action, "embeded"]) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert "unknown profile 'embeded'" in said
    assert "did you mean embedded" in said


def test_start_of_a_profile_without_its_model_says_how_to_get_it(
    home: Path, capsys: pytest.CaptureFixture[str]
):
    assert run(["server", "start", "embedded-small"]) == ExitCode.MODEL_FILE
    assert "agent model pull" in capsys.readouterr().err


def test_start_of_an_unknown_profile_is_bad_usage(home: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["server", "restart", "embeded"]) == ExitCode.USAGE
    assert "did you mean" in capsys.readouterr().err


def test_start_is_refused_for_a_server_of_somebody_else(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("AGENT_SERVER_URL", "http://127.0.0.1:8080")
    assert run(["server", "start"]) == ExitCode.USAGE
    assert "is not managed here" in capsys.readouterr().err


def test_logs_show_the_last_lines(home: Path, capsys: pytest.CaptureFixture[str]):
    logs = home / "state" / "logs"
    logs.mkdir(parents=True)
    (logs / "server-a.log").write_text("one\ntwo\nthree\n", "utf-8")
    assert run(["server", "logs", "a", "-n", "2"]) == 0
    assert capsys.readouterr().out == "two\nthree\n"
    assert run(["server", "logs", "b"]) == ExitCode.USAGE


def test_profiles_are_listed_with_what_is_wrong(tiny: Path, capsys: pytest.CaptureFixture[str]):
    (tiny.parent / "config" / "profiles" / "bad.toml").write_text("contxt = 5", "utf-8")
    assert run(["profile", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("tiny ") and line.endswith("for tests") for line in lines)
    assert any(line.startswith("bad ") and "unknown key 'contxt'" in line for line in lines)
    assert any(line.startswith("embedded ") for line in lines)


def test_all_shipped_profiles_validate(home: Path):
    assert run(["profile", "validate"]) == 0


def test_wrong_profile_is_bad_usage_for_validate(tiny: Path, capsys: pytest.CaptureFixture[str]):
    bad = tiny.parent / "bad.toml"
    bad.write_text("contxt = 5", "utf-8")
    assert run(["profile", "validate", "tiny", str(bad)]) == ExitCode.USAGE
    error = capsys.readouterr().err
    assert "tiny: ok" in error
    assert "did you mean 'context'" in error


def test_shown_profile_is_a_valid_profile_itself(home: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["profile", "show", "embedded-draft"]) == 0
    copy = home / "embedded-draft.toml"
    copy.write_text(capsys.readouterr().out, "utf-8")
    assert run(["profile", "validate", str(copy)]) == 0


def test_models_are_listed_once_with_their_users(home: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["model", "list", "--json"]) == 0
    rows = {row["file"]: row for row in json.loads(capsys.readouterr().out)}
    shared = rows["qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"]
    assert (shared["state"], shared["profiles"]) == ("missing", ["embedded", "embedded-draft"])


def test_pull_and_verify_of_a_file_on_disk(tiny: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["model", "pull", "tiny"]) == 0
    assert run(["model", "verify", "tiny"]) == 0
    assert "sha256 is right" in capsys.readouterr().err
    tiny.write_bytes(CONTENT[::-1])
    assert run(["model", "verify", "tiny"]) == ExitCode.MODEL_FILE
    assert "has the wrong sha256: expected" in capsys.readouterr().err


MODEL = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"


class Terminal(io.StringIO):
    """Where somebody types and reads."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def model(home: Path) -> Path:
    """The model file of the profile `embedded`, as if it were there."""
    path = home / "data" / "models" / MODEL
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x" * 3_000_000)
    return path


@pytest.fixture
def running(home: Path) -> Iterator[Record]:
    """The record of a process that runs, as that of the server of `embedded`."""
    folder = home / "state" / "run"
    folder.mkdir(parents=True)
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    record = Record(
        pid=child.pid,
        identity=process_identity(child.pid) or "",
        port=1,
        profile="embedded",
        fingerprint="f",
        state="ready",
        key_file=str(folder / "key"),
        spec_file=str(folder / "spec"),
        log_file=str(home / "log"),
        started=time.time(),
    )
    write_record(record, folder)
    yield record
    child.kill()
    child.wait()


@pytest.mark.parametrize("option", ["--yes", "-y"])
def test_rm_with_yes_takes_the_file_and_names_who_needs_it(
    option: str, model: Path, capsys: pytest.CaptureFixture[str]
):
    assert run(["model", "rm", "embedded", option]) == 0
    said = capsys.readouterr().err
    assert "needed by embedded, embedded-draft" in said
    assert f"{MODEL}: deleted" in said
    assert not model.exists()


def test_rm_without_a_terminal_deletes_nothing(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert run(["model", "rm", "embedded"]) == ExitCode.USAGE
    assert "--yes" in capsys.readouterr().err.splitlines()[-1]
    assert model.exists()


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("yes\n", 0), ("\n", 1), ("", 1), ("n\n", 1)])
def test_rm_on_a_terminal_asks_what_to_do(
    answer: str, code: int, model: Path, monkeypatch: pytest.MonkeyPatch
):
    screen = Terminal()
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    monkeypatch.setattr("sys.stderr", screen)
    assert run(["model", "rm", MODEL]) == code
    assert f"{MODEL}: 3 MB, needed by embedded, embedded-draft\n" in screen.getvalue()
    assert f"Delete this in {model.parent}? [y/N] " in screen.getvalue()
    assert model.exists() is bool(code)


def test_rm_refuses_the_file_of_a_running_server_unless_told_to(
    model: Path, running: Record, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    assert run(["model", "rm", "embedded"]) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert f"in use by the server of embedded (process {running.pid})" in said
    assert "agent server stop" in said.splitlines()[-1]
    assert model.exists()
    assert run(["model", "rm", "embedded", "--yes"]) == 0
    assert not model.exists()


def test_rm_takes_a_half_download_too(model: Path, capsys: pytest.CaptureFixture[str]):
    part = model.with_name(f"{MODEL}.part")
    model.rename(part)
    assert run(["model", "rm", "embedded", "--yes"]) == 0
    assert list(model.parent.iterdir()) == []


def test_progress_away_from_a_terminal_is_a_line_now_and_then():
    stream = io.StringIO()
    bar = DownloadBar("m.gguf", ProgressLine(stream))
    for done in range(1001):
        bar(done, 1000, "PyPI part")
    lines = stream.getvalue().splitlines()
    assert len(lines) == 11
    assert "100%" in lines[-1]
    assert "\r" not in stream.getvalue()


def test_progress_on_a_terminal_is_one_line_that_is_written_over():
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    line = ProgressLine(stream)
    DownloadBar("m.gguf", line)(500, 1000, "PyPI part")
    line.end("done")
    assert stream.getvalue().count("\n") == 1
    assert stream.getvalue().endswith("\r\x1b[Kdone\n")
