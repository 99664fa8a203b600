"""What is done about a server that no longer answers depends on what became of its process."""

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import pytest

from agent.app.servers.rescue import Rescuer
from agent.app.servers.serving import Serving
from agent.core.errors import ServerError
from agent.core.events import Event
from agent.llm.failures import Failure
from agent.resources import runtime_folder
from agent.server.identity import process_identity
from agent.server.record import Endpoint, Record, remove_record, write_record
from tests.conftest import StartServer

DROPPED = Failure("dropped", "the connection was lost", True)
UNREACHABLE = Failure("unreachable", "nothing answers", True)
SILENT = Failure("silent", "the server went silent and does not answer /health", False)
AGAIN = Endpoint(
    base_url="http://127.0.0.1:2", api_key="new", profile="p", context_tokens=7, fingerprint="f", pid=999_999
)


@dataclass
class FakeServing:
    """Gives the endpoints one after the other; an exception is raised instead."""

    endpoints: list[Endpoint | Exception]
    plain: "FakeServing | None" = None
    record: Record | None = None

    async def endpoint(self, progress: Callable[[Event], None]) -> Endpoint:
        found = self.endpoints.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def without_draft(self) -> "FakeServing | None":
        return self.plain

    def record_of(self, endpoint: Endpoint) -> Record | None:
        return self.record


@contextmanager
def hanging(folder: Path) -> Iterator[tuple[Record, "subprocess.Popen[bytes]"]]:
    """A server that runs and takes connections, and answers none; its key is in its command line."""
    runtime_folder().mkdir(parents=True)
    key = str(folder / "key")
    program = "import signal; signal.pause()"
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        subprocess.Popen([sys.executable, "-c", program, key]) as child,
    ):
        record = Record(
            pid=child.pid,
            identity=process_identity(child.pid) or "",
            port=listener.getsockname()[1],
            profile="p",
            fingerprint="f",
            state="ready",
            key_file=key,
            spec_file=str(folder / "spec"),
            log_file=str(folder / "log"),
            started=time.time(),
        )
        write_record(record, runtime_folder())
        yield record, child
        child.kill()


@pytest.fixture
def gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Record:
    """The record of a server whose process was killed."""
    monkeypatch.setenv("AGENT_STATE_HOME", str(tmp_path))
    runtime_folder().mkdir(parents=True)
    with subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"]) as child:
        record = Record(
            pid=child.pid,
            identity=process_identity(child.pid) or "",
            port=1,
            profile="p",
            fingerprint="f",
            state="ready",
            key_file=str(tmp_path / "key"),
            spec_file=str(tmp_path / "spec"),
            log_file=str(tmp_path / "log"),
            started=time.time(),
        )
        child.kill()
    write_record(record, runtime_folder())
    return record


def rescuer_of(record: Record, serving: FakeServing, events: list[Event] | None = None) -> Rescuer:
    seen = [] if events is None else events
    return Rescuer(cast("Serving", serving), record.endpoint(), emit=seen.append)


async def test_crashed_server_is_started_again_and_a_person_is_told(gone: Record):
    events: list[Event] = []
    rescuer = rescuer_of(gone, FakeServing([AGAIN]), events)
    rescue = await rescuer(DROPPED)
    assert rescue is not None
    assert (rescue.base_url, rescue.api_key, rescue.context_tokens) == ("http://127.0.0.1:2", "new", 7)
    assert rescuer.endpoint is AGAIN
    assert [event.type for event in events] == ["notice"]


async def test_server_that_hangs_is_ended_and_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AGENT_STATE_HOME", str(tmp_path))
    events: list[Event] = []
    with hanging(tmp_path) as (record, child):
        rescue = await rescuer_of(record, FakeServing([AGAIN], record=record), events)(SILENT)
        assert process_identity(child.pid) is None
    assert rescue is not None
    assert (rescue.api_key, rescue.cause) == ("new", "the server was started again")
    assert [getattr(event, "text", "") for event in events] == [f"{SILENT.text}; it is started again"]


async def test_server_that_answers_again_by_now_is_left_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scripted_server: StartServer
):
    monkeypatch.setenv("AGENT_STATE_HOME", str(tmp_path))
    server = scripted_server()
    with hanging(tmp_path) as (record, child):
        answering = replace(record, port=urlsplit(server.url).port or 0)
        rescuer = rescuer_of(record, FakeServing([], record=answering))
        rescues = [await rescuer(SILENT) for _ in range(3)]
        assert child.poll() is None
    assert [rescue.cause if rescue else "" for rescue in rescues] == ["the server answers again"] * 2 + [""]


async def test_second_crash_brings_it_back_without_its_draft(gone: Record):
    serving = FakeServing([AGAIN], plain=FakeServing([replace(AGAIN, api_key="plain")]))
    rescuer = rescuer_of(gone, serving)
    assert await rescuer(DROPPED) is not None
    write_record(replace(gone, pid=AGAIN.pid or 0), runtime_folder())
    rescue = await rescuer(DROPPED)
    assert rescue is not None
    assert rescue.api_key == "plain"
    assert "without its draft model" in rescue.cause


async def test_server_that_does_not_come_back_is_tried_without_its_draft(gone: Record):
    serving = FakeServing([ServerError("no memory")], plain=FakeServing([AGAIN]))
    assert await rescuer_of(gone, serving)(DROPPED) is not None


async def test_reason_is_kept_when_nothing_helps(gone: Record):
    rescuer = rescuer_of(gone, FakeServing([ServerError("no memory")]))
    assert await rescuer(DROPPED) is None
    assert rescuer.failure is not None
    assert rescuer.failure.message == "no memory"
    assert await rescuer(UNREACHABLE) is None


async def test_server_that_was_stopped_while_it_answered_stays_stopped(gone: Record):
    write_record(replace(gone, state="stopping"), runtime_folder())
    rescuer = rescuer_of(gone, FakeServing([AGAIN]))
    assert await rescuer(DROPPED) is None
    assert await rescuer(UNREACHABLE) is None
    assert rescuer.failure is not None
    assert rescuer.failure.message == "the server was stopped"


async def test_server_that_was_stopped_between_two_requests_is_started_again(gone: Record):
    remove_record(gone, runtime_folder())
    assert await rescuer_of(gone, FakeServing([AGAIN]))(UNREACHABLE) is not None


async def test_server_that_another_program_started_again_is_used(gone: Record):
    write_record(replace(gone, pid=AGAIN.pid or 0), runtime_folder())
    rescuer = rescuer_of(gone, FakeServing([AGAIN]))
    assert await rescuer(Failure("refused", "the key was refused", False)) is not None
    assert rescuer.endpoint is AGAIN


async def test_server_of_somebody_else_is_not_looked_after(gone: Record):
    endpoint = replace(gone.endpoint(), fingerprint=None)
    rescuer = Rescuer(cast("Serving", FakeServing([])), endpoint, emit=lambda event: None)
    assert await rescuer(DROPPED) is None
