"""Some hundred torn sessions and damaged streams, some kills, and that their oracles see damage."""

import asyncio
import json
import random
from pathlib import Path

import pytest

from agent.session.store import EVENTS_NAME
from benchmarks.reliability import kills, sessions, sse
from tests.e2e.conftest import Place
from tests.llm.rig import Client


def test_torn_session_files_lose_no_intact_record() -> None:
    figures = sessions.run(400, 7)
    assert (figures["failures"], figures["first_failures"]) == (0, [])
    assert len(figures["damage"]) == 10


def test_the_oracle_of_sessions_sees_a_record_that_is_not_read(tmp_path: Path) -> None:
    written = sessions.records(random.Random(1))
    (tmp_path / EVENTS_NAME).write_bytes(json.dumps(written[0]).encode())
    assert not sessions.is_within(written, written[1:])


def test_damaged_streams_end_in_one_reply_and_poison_nothing() -> None:
    figures = sse.run(60, 7)
    assert (figures["failures"], figures["first_failures"]) == (0, [])


async def test_the_oracle_of_streams_sees_a_poisoned_client() -> None:
    class Stuck(sse.Server):
        """Sends the same whatever it is told to."""

        body = property(lambda self: b"".join(sse.chunks("Stale.")), lambda self, value: None)

    server = Stuck()
    listener = await asyncio.start_server(server, "127.0.0.1", 0)
    client = Client(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1")
    async with listener:
        assert "Stale." in await sse.fault(client, server, "none", random.Random(1))
        await client.model.close()


@pytest.mark.slow
def test_a_kill_during_a_run_loses_nothing_of_the_persons() -> None:
    figures = kills.run(5, 5, step=65)  # before and after an edit, while a command runs, and near the end
    assert (figures["bytes_lost"], figures["failures"], figures["first_failures"]) == (0, 0, [])


def test_the_oracle_of_kills_sees_lost_bytes(tmp_path: Path) -> None:
    place = Place(tmp_path)
    person = kills.prepare(place)
    assert kills.lost_bytes(place, person) == 0
    (place.workspace / "untracked.txt").write_bytes(b"overwritten")
    assert kills.lost_bytes(place, person) == len(person["untracked.txt"])
