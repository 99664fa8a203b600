"""Much output, odd output, and output in other encodings."""

import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.core.tool import ToolContext
from tests.tools.shelling import Shell, opened
from tools._process import output as output_module
from tools._process.environment import quiet_environment
from tools._process.output import CommandOutput

_ONE_GIGABYTE = """
import asyncio, json, resource, sys
from pathlib import Path
from agent.core.tool import ToolContext
from tools.shell import ShellParams, ShellTool

class NoLedger: ...

async def main():
    folder, command = Path(sys.argv[1]), sys.argv[2]
    shown = []
    context = ToolContext(workspace=folder, ledger=NoLedger(), spill_folder=folder / "spill",
                          emit=lambda text: shown.append(len(text)), environment={"PATH": "/usr/bin:/bin"})
    tool = ShellTool()
    await tool.run(ShellParams(command="seq 20000"), context)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = await tool.run(ShellParams(command=command, timeout=300), context)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    kept = max(path.stat().st_size for path in (folder / "spill").iterdir())
    print(json.dumps({"grown_kib": after - before, "text": result.model_text, "shown": sum(shown),
                      "kept": kept}))

asyncio.run(main())
"""


@pytest.fixture
async def shell(context: ToolContext) -> AsyncIterator[Shell]:
    async for shell in opened(context):
        yield shell


def run_apart(folder: Path, command: str) -> dict:
    import json

    done = subprocess.run(
        [sys.executable, "-c", _ONE_GIGABYTE, str(folder), command],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_gigabyte_of_output_needs_no_more_memory_than_a_little(workspace: Path):
    figures = run_apart(workspace, "yes | head -c 1000000000; echo; echo the end")

    for path in (workspace / "spill").iterdir():
        path.unlink()
    assert figures["grown_kib"] < 50 * 1024
    assert figures["text"].endswith("the end\nexit code 0")
    assert figures["kept"] > 1_000_000_000
    assert figures["shown"] < 20_000_000


def test_much_output_is_shown_live_in_samples(tmp_path: Path):
    shown: list[str] = []
    output = CommandOutput(tmp_path, shown.append)
    for number in range(2_000):
        output.feed(b"%08d " % number * 200)
    output.close()

    text = "".join(shown)
    assert text.startswith("00000000 ")
    assert text.endswith("00001999 ")
    assert "bytes not shown ...]" in text
    assert len(text) < 3 * output_module.SHOWN_LIVE_BYTES


def test_a_progress_bar_leaves_room_for_what_matters(tmp_path: Path):
    output = CommandOutput(tmp_path, lambda text: None)
    output.feed(b"first line\n")
    for percent in range(20_000):
        output.feed(b"\rloading %d/20000" % percent)
    output.feed(b"\r")
    output.feed(b"\nlast line\n")

    output.close()

    assert output.for_model() == "first line\nloading 19999/20000\nlast line"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_how_output_is_cut_into_pieces_makes_no_difference(tmp_path: Path, size: int):
    data = b"a\r\nb\rc\r\r\nd\n\re\rf\x1b[31mred\x1b[0m\r"
    output = CommandOutput(tmp_path, lambda text: None)
    for at in range(0, len(data), size):
        output.feed(data[at : at + size])

    assert output.for_model() == "a\nc\nd\nfred"


def test_a_full_disk_leaves_no_half_a_record_behind(tmp_path: Path):
    output = CommandOutput(Path("/dev/full/x"), lambda text: None)
    output.feed(b"x" * 100_000)

    assert output.spill_path is None
    assert output.for_model().startswith("xxx")


async def test_text_in_gbk_is_read_as_such(shell: Shell, workspace: Path):
    (workspace / "a.txt").write_bytes("配置文件测试\n".encode("gbk"))

    assert (await shell("cat a.txt")).model_text == "配置文件测试\nexit code 0"


async def test_programs_write_utf8_where_no_locale_is_chosen(context: ToolContext):
    bare = replace(context, environment={"PATH": context.environment["PATH"]})
    async for shell in opened(bare):
        result = await shell(f"{sys.executable} -c 'print(\"größe 配\")'; printf '%s\\n' ü")
        assert result.model_text == "größe 配\nü\nexit code 0"


@pytest.mark.parametrize(
    ("given", "chosen"),
    [
        ({}, "C.UTF-8"),
        ({"LANG": "C"}, "C.UTF-8"),
        ({"LANG": "de_DE.UTF-8"}, None),
        ({"LC_ALL": "C"}, None),
        ({"LANG": "C", "LC_CTYPE": "en_US.UTF-8"}, "en_US.UTF-8"),
    ],
)
def test_a_locale_that_a_person_chose_stays(given: dict[str, str], chosen: str | None, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    assert quiet_environment(given).get("LC_CTYPE") == chosen


@pytest.mark.parametrize(
    "command",
    [
        "git log",
        "git -c core.pager=less log",
        "git commit --amend",
        "less long.txt",
        "man bash",
        "python3",
        "read -p password: x",
        "ssh -o StrictHostKeyChecking=ask nobody@127.0.0.1 -p 1",
        "sudo -k ls",
        "git credential fill <<< url=https://example.invalid",
        "cat",
    ],
)
async def test_what_would_wait_for_a_person_comes_back(shell: Shell, workspace: Path, command: str):
    (workspace / "long.txt").write_text("line\n" * 2000, "utf-8")
    await shell("git init -q && git add . && git -c user.name=a -c user.email=a@b commit -qm first")

    result = await shell(command, seconds=60)

    assert "stopped: not done" not in result.model_text
