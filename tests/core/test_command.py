"""A shell command of the person's: how it ends, what is kept of its output, and that nothing is left."""

import os
from contextlib import closing
from pathlib import Path

import pytest

from agent.core.command import Output, exit_text, run_shell
from tests.patience import PATIENCE_SECONDS, limits


async def run(
    command: str, folder: Path, *, seconds: float = PATIENCE_SECONDS, head: int = 100, tail: int = 0
):
    with closing(Output(head, tail)) as out:
        code = await run_shell(command, folder, os.environ, seconds, out=out)
        return code, await out.text()


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [("echo a; echo b >&2", 0, "a\nb\n"), ("exit 3", 3, ""), ("kill -9 $$", -9, "")],
)
async def test_code_and_output_of_both_streams_come_back(command: str, code: int, text: str, tmp_path: Path):
    assert await run(command, tmp_path) == (code, text)


async def test_command_that_hangs_has_no_code(tmp_path: Path):
    for seconds in limits(0.3):
        code, text = await run("echo begun; trap '' TERM; sleep 60", tmp_path, seconds=seconds)
        if text:
            break
    assert (code, text) == (None, "begun\n")


async def test_first_bytes_are_kept_of_a_flood(tmp_path: Path):
    code, text = await run("yes | head -c 3000000", tmp_path)
    assert (code, text) == (0, "y\n" * 50)


async def test_both_ends_are_kept_where_a_tail_is_asked_for(tmp_path: Path):
    code, text = await run("echo first; yes | head -c 3000000; echo last", tmp_path, head=6, tail=5)
    assert (code, text) == (0, "first\n\n[…]\nlast\n")


async def test_short_output_has_no_mark(tmp_path: Path):
    assert await run("echo first; echo last", tmp_path, head=6, tail=50) == (0, "first\nlast\n")


async def test_input_is_empty(tmp_path: Path):
    assert await run("cat", tmp_path) == (0, "")


async def test_descriptors_are_closed_when_it_cannot_start(tmp_path: Path):
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(FileNotFoundError):
        await run("true", tmp_path / "gone")
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


def test_end_is_told_for_people():
    assert (exit_text(2), exit_text(-9)) == ("exit code 2", "killed by signal 9")
