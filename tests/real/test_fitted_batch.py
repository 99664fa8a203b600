"""A server is started with a batch that fits the machine: after a cancel at most two pass, drafts fit in."""

import json
import socket
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agent.app.servers.fitting import remember_read
from agent.app.servers.serving import Serving
from agent.resources import runtime_folder
from agent.server.batch_fit import LEAST_BATCH
from agent.server.loopback import request_json
from agent.server.process import stop_server
from agent.server.record import Record, list_records
from agent.server.slot_reading import Read, look_at_slots
from tests.real.rig import choosing, until

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

PROFILE = """\
extends = "embedded-small"
engine = "{engine}"
context = 2048
batch = 64
ubatch = 64
batch_seconds = 0.4

[speculation]
kind = "ngram-mod"
n_match = 4
n_min = 2
n_max = 63
"""
QUICK = Read(tokens=1000, evaluated=1000, seconds=1.0, slot=0)
SLOW = Read(tokens=1000, evaluated=1000, seconds=20.0, slot=0)
FITTED = 20
LINE = "The same line stands here again and again.\n"
ATTEMPTS = 3


async def started(serving: Serving) -> tuple[Record, list[str]]:
    """The server, and what was said while it came up."""
    said: list[str] = []
    await serving.endpoint(lambda event: said.append(event.detail))
    [record] = list_records(runtime_folder())
    return record, said


def asked(record: Record, path: str, **body: Any) -> dict[str, Any]:
    status, answer = request_json(record.port, "POST", path, record.api_key, body, timeout=120)
    assert status == 200, answer
    assert isinstance(answer, dict)
    return answer


def read_after_leaving(record: Record, number: int) -> tuple[int, set[int]]:
    """Tokens that were read once the client was gone, and the sizes of the batches until then."""
    prompt = f"Attempt {number}. " + " ".join(f"Rule {one}: keep part {one * 7} short." for one in range(60))
    body = json.dumps({"prompt": prompt, "n_predict": 1, "stream": True, "return_progress": True})
    head = (
        f"POST /completion HTTP/1.0\r\nAuthorization: Bearer {record.api_key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    read = [0]
    with socket.create_connection((record.host, record.port), timeout=120) as connection:
        connection.sendall((head + body).encode())
        with connection.makefile("rb") as lines:
            for line in lines:
                told = json.loads(line[5:]) if line.startswith(b"data:") else {}
                if progress := told.get("prompt_progress"):
                    read.append(progress["processed"])
                if read[-1] > 3 * FITTED:
                    # Who leaves while the server still writes is seen at once, and one batch passes.
                    look_at_slots(record, timeout=60)
                    break
    until(lambda: (seen := look_at_slots(record)) and not seen[0].is_busy)
    slots = look_at_slots(record, timeout=60)
    assert slots
    sizes = {after - before for before, after in pairwise(read[1:])}
    return slots[0].tokens - read[-1], sizes


@pytest.mark.parametrize("engine", ["embedded", "llama-server"])
async def test_a_machine_known_to_be_slow_gets_small_batches_short_drafts_and_its_saved_states(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with choosing("slow", PROFILE, engine, tmp_path, monkeypatch) as serving:
        remember_read(serving, QUICK)
        record, said = await started(serving)
        assert not [one for one in said if "tokens at once" in one]
        assert record.batch_limit == 0
        whole = asked(record, "/completion", prompt=LINE * 10, n_predict=0)
        asked(record, "/slots/0?action=save", filename="lines.bin")
        await stop_server(record, runtime_folder())

        for _ in range(2):
            remember_read(serving, SLOW)
        record, said = await started(serving)
        words = "reads 20 tokens at once and drafts 19 instead of 64: at 50 tok/s, as read here last"
        assert [one for one in said if one.startswith(words)]
        assert record.batch_limit == FITTED

        asked(record, "/slots/0?action=restore", filename="lines.bin")
        again = asked(record, "/completion", prompt=LINE * 10, n_predict=96, ignore_eos=True, temperature=0)
        assert again["timings"]["cache_n"] >= whole["timings"]["prompt_n"] - 1
        assert again["timings"]["predicted_n"] == 96
        assert again["timings"]["draft_n"] > 0

        found = []
        while len(found) < ATTEMPTS and not (found and found[-1] <= 2 * FITTED):
            after, sizes = read_after_leaving(record, len(found))
            assert sizes == {FITTED}
            found.append(after)
        assert min(found) <= 2 * FITTED


@pytest.mark.parametrize("engine", ["embedded", "llama-server"])
async def test_the_first_server_of_a_machine_is_measured_before_anybody_uses_it(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    impatient = PROFILE.replace("batch_seconds = 0.4", "batch_seconds = 0.001")
    async with choosing("first", impatient, engine, tmp_path, monkeypatch) as serving:
        record, said = await started(serving)
        assert "measuring how fast this machine reads" in said
        words = "reads 16 tokens at once and drafts 15 instead of 64: at "
        assert [one for one in said if one.startswith(words)]
        assert record.batch_limit == LEAST_BATCH
        answer = asked(record, "/completion", prompt=LINE * 10, n_predict=8, temperature=0)
        assert answer["timings"]["predicted_n"] == 8
