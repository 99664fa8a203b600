import codecs
import os
import stat
from pathlib import Path

import pytest

from tools.read import ReadParams, ReadTool
from tools.write import WriteParams, WriteTool


@pytest.fixture
def write(context):
    async def run(path: str, content: str):
        return await WriteTool().run(WriteParams(path=path, content=content), context)

    return run


@pytest.fixture
def known(workspace: Path, context):
    """Puts a file there and lets the model read it."""

    async def create(name: str, content: bytes) -> Path:
        path = workspace / name
        path.write_bytes(content)
        await ReadTool().run(ReadParams(path=name), context)
        return path

    return create


async def test_creates_a_file_and_the_folders_above_it(write, workspace: Path, ledger):
    result = await write("src/pkg/a.py", "one\ntwo\n")

    assert (workspace / "src/pkg/a.py").read_bytes() == b"one\ntwo\n"
    assert result.model_text == "Created src/pkg/a.py, 2 lines."
    assert result.diffs[0].before is None
    assert result.diffs[0].after == "one\ntwo\n"
    assert ledger.originals == {workspace / "src/pkg/a.py": None}


async def test_the_name_of_the_workspace_before_a_path_makes_no_second_file(write, workspace: Path):
    (workspace / "calc.py").write_text("x = 1\n", "utf-8")
    doubled = f"{workspace.name}/calc.py"
    result = await write(doubled, "x = 2\n")
    assert result.is_error
    assert "did you mean calc.py?" in result.model_text
    assert not (workspace / workspace.name).exists()
    assert not (await write(f"{workspace.name}/new.py", "y = 1\n")).is_error
    assert not (await write(doubled, "x = 2\n")).is_error  # its folder is there by now


async def test_can_replace_a_file_that_it_created(write, workspace: Path):
    await write("a.py", "one\n")

    result = await write("a.py", "two\n")

    assert result.model_text == "Replaced a.py, 1 lines."
    assert (result.diffs[0].before, result.diffs[0].after) == ("one\n", "two\n")


async def test_refuses_to_overwrite_a_file_that_was_not_read(write, workspace: Path, ledger):
    (workspace / "a.py").write_text("mine\n", encoding="utf-8")

    result = await write("a.py", "yours\n")

    assert result.is_error
    assert result.model_text == "a.py exists and you have not read it. Read it first, then change it."
    assert (workspace / "a.py").read_text(encoding="utf-8") == "mine\n"
    assert not ledger.originals


async def test_refuses_to_overwrite_what_a_person_changed_meanwhile(write, known):
    path = await known("a.py", b"one\n")
    path.write_bytes(b"changed by hand\n")

    result = await write("a.py", "two\n")

    assert result.is_error
    assert result.model_text == "a.py changed on disk since you read it. Read it again first."
    assert path.read_bytes() == b"changed by hand\n"


async def test_fills_an_empty_file_that_was_not_read(write, workspace: Path):
    (workspace / "__init__.py").touch()

    assert not (await write("__init__.py", "x = 1\n")).is_error


async def test_the_same_content_again_is_an_error_that_says_so(write, known):
    path = await known("a.py", b"one\n")
    before = path.stat().st_mtime_ns

    result = await write("a.py", "one\n")

    assert result.is_error
    assert result.model_text.startswith("Nothing changed: a.py already has exactly this content.")
    assert path.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\r\nb\r\n", b"new\r\nlines\r\n"),
        (codecs.BOM_UTF8 + b"a\n", codecs.BOM_UTF8 + b"new\nlines\n"),
        ("ä\n".encode("utf-16"), "new\nlines\n".encode("utf-16")),
        ("ä\n".encode("latin-1"), b"new\nlines\n"),
    ],
    ids=["crlf", "mark", "utf-16", "latin-1"],
)
async def test_keeps_how_the_file_was_stored(write, known, before: bytes, after: bytes):
    path = await known("a.txt", before)

    await write("a.txt", "new\nlines\n")

    assert path.read_bytes() == after


async def test_a_character_that_the_encoding_lacks_is_an_error(write, known):
    path = await known("a.txt", "ä\n".encode("latin-1"))

    result = await write("a.txt", "→\n")

    assert result.is_error
    assert result.model_text == "a.txt is stored as cp1252, which has no '\\u2192'. Leave it out."
    assert path.read_bytes() == "ä\n".encode("latin-1")


async def test_half_a_character_from_the_model_is_an_error(write, workspace: Path):
    assert (await write("a.txt", "\ud83d")).is_error
    assert not (workspace / "a.txt").exists()


async def test_keeps_the_mode(write, known):
    path = await known("run.sh", b"#!/bin/sh\n")
    path.chmod(0o750)

    await write("run.sh", "#!/bin/sh\nls\n")

    assert stat.S_IMODE(path.stat().st_mode) == 0o750


async def test_a_new_file_gets_the_mode_that_the_umask_leaves(write, workspace: Path):
    await write("a.py", "x\n")

    (workspace / "b.py").write_text("x\n", encoding="utf-8")
    assert (workspace / "a.py").stat().st_mode == (workspace / "b.py").stat().st_mode


async def test_a_symbolic_link_stays_one(write, known, workspace: Path):
    target = await known("real.txt", b"one\n")
    (workspace / "link.txt").symlink_to(target)

    await write("link.txt", "two\n")

    assert (workspace / "link.txt").is_symlink()
    assert target.read_bytes() == b"two\n"


async def test_leaves_nothing_else_behind(write, workspace: Path):
    await write("a.py", "x\n")
    await write("a.py", "y\n")

    assert [entry.name for entry in workspace.iterdir()] == ["a.py"]


@pytest.mark.parametrize("path", ["folder", "a.txt/b.txt", "../out.txt", "x" * 300, "", "fifo"])
async def test_a_place_that_cannot_be_written_is_an_error(write, workspace: Path, path: str):
    (workspace / "folder").mkdir()
    (workspace / "a.txt").touch()
    os.mkfifo(workspace / "fifo")

    assert (await write(path, "x")).is_error


async def test_a_write_protected_file_is_left_alone(write, known):
    path = await known("a.txt", b"one\n")
    path.chmod(0o444)

    assert (await write("a.txt", "two\n")).model_text == "a.txt is write-protected. Leave it as it is."


async def test_a_binary_file_is_not_overwritten(write, workspace: Path):
    (workspace / "a.bin").write_bytes(b"\0\1\2")

    assert "is no text file (binary data)" in (await write("a.bin", "x")).model_text


async def test_drops_a_fence_around_code(write, workspace: Path):
    result = await write("a.py", "```python\nx = 1\n```")

    assert (workspace / "a.py").read_bytes() == b"x = 1\n"
    assert result.model_text == "Created a.py, 1 lines. The ``` lines around the content were removed."


async def test_keeps_a_fence_where_one_is_normal(write, workspace: Path):
    await write("a.md", "```python\nx = 1\n```\n")

    assert (workspace / "a.md").read_bytes() == b"```python\nx = 1\n```\n"


async def test_drops_line_numbers_that_were_copied_from_read(write, workspace: Path):
    result = await write("a.py", "1\tdef f():\n2\t    return 1\n3\t\n")

    assert (workspace / "a.py").read_bytes() == b"def f():\n    return 1\n\n"
    assert "line numbers were removed" in result.model_text


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("table.tsv", "1\ta\n2\tb\n3\tc\n"),
        ("table.txt", "1\ta\n2\tb\n3\tc\n"),
        ("map.yaml", "1: a\n2: b\n3: c\n"),
        ("part.py", "5\ta\n6\tb\n7\tc\n"),
    ],
)
async def test_keeps_numbers_where_they_may_be_data(write, workspace: Path, name: str, content: str):
    await write(name, content)

    assert (workspace / name).read_text(encoding="utf-8") == content


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("src\\a.py", "src\\a.py has backslashes. Write it as src/a.py."),
        ("my\\ notes.txt", "my\\ notes.txt has backslashes. Write it as my notes.txt."),
        ("C:\\work\\a.py", "C:\\work\\a.py is a path of Windows. Use one relative to the workspace."),
    ],
)
async def test_a_path_of_windows_makes_no_file_of_an_odd_name(write, workspace: Path, path: str, said: str):
    result = await write(path, "x\n")

    assert (result.model_text, result.is_error) == (said, True)
    assert list(workspace.iterdir()) == []


async def test_a_file_with_a_backslash_in_its_name_can_be_written(write, known):
    path = await known("odd\\name.txt", b"old\n")

    assert not (await write("odd\\name.txt", "new\n")).is_error
    assert path.read_bytes() == b"new\n"
