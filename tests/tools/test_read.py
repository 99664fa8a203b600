import os
import struct
import threading
from pathlib import Path

import pytest

from tests.tools.ledger import MemoryLedger
from tools._text.files import EDITABLE_BYTES, LARGE_BYTES
from tools.read import MAX_BYTES, ReadParams, ReadTool


@pytest.fixture
def read(context):
    async def run(path: str, **options: int):
        return await ReadTool().run(ReadParams(path=path, **options), context)

    return run


async def test_numbers_the_lines(read, workspace: Path):
    (workspace / "a.py").write_bytes(b"one\n\n  three\n")

    assert (await read("a.py")).model_text == "1\tone\n2\t\n3\t  three"


async def test_remembers_that_the_model_has_seen_the_file(read, workspace: Path, ledger):
    (workspace / "a.py").write_text("one\n", encoding="utf-8")

    await read("a.py")

    assert ledger.seen(workspace / "a.py") is not None


async def test_shows_a_range_and_says_how_to_go_on(read, workspace: Path):
    (workspace / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 11)), encoding="utf-8")

    result = await read("a.txt", start=4, lines=2)

    assert result.model_text == "4\tline 4\n5\tline 5\n(lines 4-5 of 10; go on with start=6)"


async def test_shows_400_lines_when_no_number_is_given(read, workspace: Path):
    (workspace / "a.txt").write_text("x\n" * 1000, encoding="utf-8")

    assert (await read("a.txt")).model_text.endswith("\n400\tx\n(lines 1-400 of 1000; go on with start=401)")


async def test_stays_below_the_size_limit(read, workspace: Path):
    (workspace / "a.txt").write_text(("x" * 500 + "\n") * 300, encoding="utf-8")

    result = await read("a.txt")

    assert len(result.model_text) < MAX_BYTES + 100
    assert "of 300; go on with start=33)" in result.model_text


async def test_cuts_a_line_that_is_too_long_and_names_how_much(read, workspace: Path):
    (workspace / "min.js").write_text("y" * 1_000_000 + "\nend\n", encoding="utf-8")

    lines = (await read("min.js")).model_text.split("\n")

    assert lines[0].endswith("… (+998000 characters)")
    assert lines[1] == "2\tend"


@pytest.mark.parametrize(("start", "lines"), [(0, 0), (-3, -1)])
async def test_numbers_that_make_no_sense_show_the_beginning(read, workspace: Path, start: int, lines: int):
    (workspace / "a.txt").write_text("one\ntwo\n", encoding="utf-8")

    assert (await read("a.txt", start=start, lines=lines)).model_text == "1\tone\n2\ttwo"


@pytest.mark.parametrize(("text", "length"), [("one\ntwo\n", "2 lines"), ("one\n", "1 line")])
async def test_a_start_after_the_end_is_an_error_that_tells_the_number_of_lines(
    read, workspace: Path, text: str, length: str
):
    (workspace / "a.txt").write_text(text, encoding="utf-8")

    result = await read("a.txt", start=5)

    assert result.is_error
    assert result.model_text == f"a.txt has only {length}. Give a smaller start."


async def test_an_empty_file_is_called_empty(read, workspace: Path):
    (workspace / "empty").touch()

    assert (await read("empty")).model_text == "(empty file)"


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("\ufeffgrüß\n".encode(), "1\tgrüß"),
        ("grüß\r\nb\r\n".encode("utf-16"), "1\tgrüß\n2\tb"),
        ("grüß\n".encode("latin-1"), "1\tgrüß"),
        ("hello world\n".encode("utf-16-le"), "1\thello world"),
        ("größer\n".encode() + b"\xff\n", "1\tgrößer\n2\t\ufffd"),
        ("a\u2028b\x0cc\n".encode(), "1\ta\u2028b\x0cc"),
    ],
    ids=[
        "mark",
        "utf-16",
        "latin-1",
        "utf-16 without mark",
        "one broken byte",
        "no line ends of other kinds",
    ],
)
async def test_reads_text_however_it_is_stored(read, workspace: Path, content: bytes, shown: str):
    (workspace / "a.txt").write_bytes(content)

    assert (await read("a.txt")).model_text == shown


@pytest.mark.parametrize(
    ("content", "description"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 640, 480), "PNG image, 640x480 pixels"),
        (b"GIF89a" + struct.pack("<HH", 3, 4) + b"\0", "GIF image, 3x4 pixels"),
        (
            b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08" + struct.pack(">HH", 20, 10) + b"\0" * 9,
            "JPEG image, 10x20 pixels",
        ),
        (b"\x89PNG\r\n\x1a\n\0", "damaged image"),
        (b"\x7fELF\0\0", "ELF program or library"),
        (b"%PDF-1.7\n%text", "PDF document"),
        (bytes(range(256)), "binary data"),
    ],
)
async def test_describes_what_is_no_text(read, workspace: Path, ledger, content: bytes, description: str):
    (workspace / "thing").write_bytes(content)

    result = await read("thing")

    assert result.model_text == f"thing: {description}, {len(content)} bytes, no text."
    assert not result.is_error
    assert ledger.seen(workspace / "thing") is None


async def test_lists_a_folder(read, workspace: Path):
    (workspace / "src").mkdir()
    (workspace / ".git").mkdir()
    (workspace / "b.txt").touch()

    assert (await read(".")).model_text == "b.txt\nsrc/"
    assert (await read("src")).model_text == "(empty folder)"


async def test_a_long_folder_is_cut_with_a_note(read, workspace: Path):
    for number in range(250):
        (workspace / f"{number:03}").touch()

    assert (await read("")).is_error
    assert (await read(".")).model_text.endswith("199\n(50 more entries; use glob to find a name)")


async def test_a_missing_file_is_an_error_with_the_closest_names(read, workspace: Path):
    (workspace / "src").mkdir()
    (workspace / "src" / "parser.py").touch()
    (workspace / "readme.md").touch()

    result = await read("parser.py")

    assert result.is_error
    assert result.model_text == "parser.py does not exist. Closest: src/parser.py."
    assert "src/parser.py" in (await read("src/parsr.py")).model_text
    assert "readme.md" in (await read("README.md")).model_text


async def test_a_missing_file_like_no_other_is_an_error_with_advice(read):
    assert (await read("zzz")).model_text == "zzz does not exist. Use glob to see which files there are."


@pytest.mark.parametrize("path", ["/etc/passwd", "../secret", "link/secret", "a/../../secret"])
async def test_a_path_outside_the_workspace_is_an_error(read, workspace: Path, path: str):
    (workspace.parent / "secret").write_text("s", encoding="utf-8")
    (workspace / "link").symlink_to(workspace.parent)

    result = await read(path)

    assert result.is_error
    assert "outside the workspace" in result.model_text


async def test_an_absolute_path_that_was_made_up_leads_to_the_real_one(read, workspace: Path):
    (workspace / "src").mkdir()
    (workspace / "src" / "a.py").touch()

    assert (await read("/home/user/project/src/a.py")).model_text.endswith("Did you mean src/a.py?")


async def test_a_long_output_that_was_put_aside_can_be_read(read, context):
    context.spill_folder.mkdir()
    (context.spill_folder / "shell-1.txt").write_text("full\n", encoding="utf-8")

    assert (await read(str(context.spill_folder / "shell-1.txt"))).model_text == "1\tfull"


async def test_a_pipe_is_not_waited_for(read, workspace: Path):
    os.mkfifo(workspace / "fifo")

    assert (await read("fifo")).model_text == "fifo is a pipe, socket or device, not a file."


@pytest.mark.parametrize("path", ["x" * 5000, "a\0b", "loop/x", "a.txt/b"])
async def test_an_impossible_path_is_an_error(read, workspace: Path, path: str):
    (workspace / "loop").symlink_to(workspace / "loop")
    (workspace / "a.txt").touch()

    assert (await read(path)).is_error


async def test_a_file_beyond_the_counting_limit_is_read_in_parts(read, workspace: Path):
    with (workspace / "big.log").open("wb") as stream:
        for number in range(1, 200_001):
            stream.write(b"%07d %s\n" % (number, b"-" * 60))

    result = await read("big.log", start=150_000, lines=2)

    assert result.model_text.startswith("150000\t0150000 -")
    assert result.model_text.endswith("(lines 150000-150001; go on with start=150002)")


async def test_a_file_that_is_too_long_to_be_edited_is_not_read_to_its_end(
    read, workspace: Path, ledger: MemoryLedger
):
    """Its checksum would be for edits, and of a log of gigabytes takes longer than anybody waits."""
    path = workspace / "a.log"
    path.write_bytes(b"one\n" * 1000)
    os.truncate(path, EDITABLE_BYTES + 1)
    result = await read("a.log", lines=1)
    assert result.model_text == "1\tone\n(lines 1-1; go on with start=2)"
    assert ledger.versions == {}


async def test_a_long_file_is_read_beside_the_event_loop(read, workspace: Path, ledger: MemoryLedger):
    (workspace / "a.txt").write_bytes(b"x\n" * LARGE_BYTES)
    await read("a.txt", lines=1)
    assert workspace / "a.txt" in ledger.versions
    assert threading.current_thread() not in ledger.threads
