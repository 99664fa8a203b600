"""The record of a running server, and the quick way to a running one."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.server.identity import process_identity
from agent.server.process import ensure_running
from agent.server.record import Record, find_running, read_record, record_file, write_record
from tests.server.conftest import MakePlan


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Record]:
    """A record of this very process, which serves nothing."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        key = tmp_path / "key"
        key.write_text("k", "utf-8")
        yield Record(
            pid=os.getpid(),
            identity=process_identity(os.getpid()) or "",
            port=unused.getsockname()[1],
            profile="p",
            fingerprint="f",
            state="ready",
            key_file=str(key),
            spec_file="s",
            log_file="l",
            started=1.5,
        )


def test_record_is_read_as_it_was_written(record: Record, tmp_path: Path):
    write_record(record, tmp_path)
    assert read_record(record_file(tmp_path, "f")) == record


def test_record_of_another_version_is_no_record(tmp_path: Path):
    record_file(tmp_path, "f").write_text('{"pid": 5, "future": true}', "utf-8")
    assert read_record(record_file(tmp_path, "f")) is None


def test_nothing_is_found_where_nothing_was_recorded(tmp_path: Path):
    assert find_running("f", tmp_path / "missing") is None


def test_process_that_does_not_answer_is_not_found(record: Record, tmp_path: Path):
    write_record(record, tmp_path)
    assert find_running("f", tmp_path) is None


async def test_server_that_is_still_loading_is_not_found(plan: MakePlan):
    made = plan()
    await ensure_running(made)
    path = record_file(made.runtime_folder, made.fingerprint)
    record = read_record(path)
    assert record is not None
    write_record(replace(record, state="starting"), made.runtime_folder)
    assert find_running(made.fingerprint, made.runtime_folder) is None


async def test_same_number_with_another_start_time_is_another_process(plan: MakePlan):
    made = plan()
    await ensure_running(made)
    record = read_record(record_file(made.runtime_folder, made.fingerprint))
    assert record is not None
    write_record(replace(record, identity="boot:1"), made.runtime_folder)
    assert find_running(made.fingerprint, made.runtime_folder) is None
    write_record(record, made.runtime_folder)


def test_ended_process_has_no_identity_even_before_it_is_collected():
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert process_identity(child.pid) is None
    child.wait()


def test_quick_way_imports_nothing_heavy():
    code = "import sys, agent.server.record; print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {"httpx", "httpx2", "psutil", "asyncio", "http.client", "pydantic", "ssl", "subprocess"}
    assert heavy.isdisjoint(modules)
