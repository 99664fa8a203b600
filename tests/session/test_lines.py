"""Append-only JSON lines under kills, torn tails and full disks."""

import errno
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.session.lines import LineAppender, parse_line, plain, read_lines

WRITER = """
import sys
from pathlib import Path
from agent.session.lines import LineAppender
lines = LineAppender(Path(sys.argv[1]))
number = 0
while True:
    lines.append({"number": number, "text": "x" * (number % 5000)})
    number += 1
    if number == 200:
        print("going", flush=True)
"""


def append_all(path: Path, records: list[dict]) -> None:
    lines = LineAppender(path)
    for record in records:
        lines.append(record)
    lines.close()


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    records = [
        {"text": "a\nb\u2028c\u0085d\0"},
        {"n": 1, "deep": {"list": [1, None, True]}},
        {"text": "\udc80"},
    ]
    append_all(tmp_path / "lines", records)
    assert list(read_lines(tmp_path / "lines")) == records


def test_no_text_can_split_a_line(tmp_path: Path) -> None:
    append_all(tmp_path / "lines", [{"text": "".join(map(chr, range(0x3000)))}])
    assert len((tmp_path / "lines").read_text(encoding="utf-8").splitlines()) == 1


def test_every_truncation_gives_a_prefix_and_lets_appending_go_on(tmp_path: Path) -> None:
    records = [{"number": number, "text": "é\n" * (number % 7)} for number in range(40)]
    append_all(tmp_path / "whole", records)
    whole = (tmp_path / "whole").read_bytes()
    chance = random.Random(7)
    torn = tmp_path / "torn"
    for _ in range(400):
        length = chance.randrange(len(whole) + 1)
        torn.write_bytes(whole[:length] + bytes(chance.choice([0, 0, 1, 4096])))
        found = list(read_lines(torn))
        assert found == records[: len(found)]
        assert len(found) >= whole[:length].count(b"\n")
        append_all(torn, [{"number": "after"}])
        assert list(read_lines(torn)) == [*found, {"number": "after"}]


@given(st.binary())
def test_no_bytes_make_reading_fail(line: bytes) -> None:
    record = parse_line(line)
    assert record is None or isinstance(record, dict)


def test_a_kill_in_the_middle_of_writing_leaves_whole_lines_in_order(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    with writer.stdout:
        writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    found = [record["number"] for record in read_lines(path)]
    assert len(found) >= 200
    assert found == list(range(len(found)))


def test_a_line_that_did_not_fit_on_the_disk_does_not_spoil_the_next(tmp_path: Path) -> None:
    room = [1000, 7]

    def write(descriptor: int, data: bytes) -> int:
        if not room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return os.write(descriptor, data[: room.pop(0)])

    lines = LineAppender(tmp_path / "lines", write=write)
    lines.append({"number": 1})
    with pytest.raises(OSError, match="No space"):
        lines.append({"number": 2})
    room.extend([1000, 1000])
    lines.append({"number": 3})
    lines.close()
    assert [record["number"] for record in read_lines(tmp_path / "lines")] == [1, 3]


def test_an_existing_file_is_not_shared_when_exclusive(tmp_path: Path) -> None:
    (tmp_path / "lines").touch()
    with pytest.raises(FileExistsError):
        LineAppender(tmp_path / "lines", exclusive=True)


def test_a_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine\n", encoding="utf-8")
    (tmp_path / "lines").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="lines"):
        LineAppender(tmp_path / "lines")


def test_plain_data_has_no_numbers_that_json_lacks() -> None:
    data = plain({"rate": float("nan"), "path": Path("a"), "set": {1}, "raw": b"\xff"}, str)
    assert json.loads(json.dumps(data, allow_nan=False)) == {
        "rate": None,
        "path": "a",
        "set": [1],
        "raw": "\ufffd",
    }
