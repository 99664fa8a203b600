"""`multi_edit`: several replacements at once, all of them or none."""

import stat
from pathlib import Path

import pytest
from pydantic import ValidationError

from agent.core.tool import ToolContext, ToolResult
from tests.tools.ledger import MemoryLedger
from tools.multi_edit import MultiEditParams, MultiEditTool
from tools.read import ReadParams, ReadTool


@pytest.fixture
def tool() -> MultiEditTool:
    return MultiEditTool()


def params_of(*edits: tuple[str, str, str]) -> MultiEditParams:
    return MultiEditParams.model_validate(
        {"edits": [{"path": path, "old": old, "new": new} for path, old, new in edits]}
    )


@pytest.fixture
def change(tool: MultiEditTool, context: ToolContext):
    async def run(*edits: tuple[str, str, str]) -> ToolResult:
        return await tool.run(params_of(*edits), context)

    return run


@pytest.fixture
def known(workspace: Path, context: ToolContext):
    """Puts a file there and lets the model read it."""

    async def create(name: str, content: str | bytes) -> Path:
        path = workspace / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        await ReadTool().run(ReadParams(path=name), context)
        return path

    return create


async def test_several_files_are_changed_at_once(change, known, ledger: MemoryLedger):
    one, two = await known("one.py", "a = 1\nb = 2\n"), await known("two.py", "from one import a\n")
    result = await change(("one.py", "a = 1", "c = 1"), ("two.py", "import a", "import c"))
    assert not result.is_error
    assert result.model_text == "Edited one.py at line 1.\nEdited two.py at line 1."
    assert (one.read_text(), two.read_text()) == ("c = 1\nb = 2\n", "from one import c\n")
    assert ledger.originals == {one: b"a = 1\nb = 2\n", two: b"from one import a\n"}
    assert [diff.path for diff in result.diffs] == ["one.py", "two.py"]


async def test_a_later_edit_of_a_file_sees_the_earlier_ones_and_there_is_one_diff(change, known):
    path = await known("one.py", "a = 1\nb = 2\n")
    result = await change(("one.py", "a = 1", "a = 10"), ("one.py", "a = 10\nb", "a = 10\nbb"))
    assert path.read_text() == "a = 10\nbb = 2\n"
    assert len(result.diffs) == 1


async def test_one_edit_that_does_not_fit_leaves_every_file_as_it_is(change, known, ledger: MemoryLedger):
    one, two = await known("one.py", "a = 1\n"), await known("two.py", "b = 2\n")
    result = await change(("one.py", "a = 1", "c = 1"), ("two.py", "nothing like it", "x"))
    assert result.is_error
    assert result.model_text.startswith("Edit 2: ")
    assert result.model_text.endswith("No file was changed.")
    assert (one.read_text(), two.read_text()) == ("a = 1\n", "b = 2\n")
    assert ledger.originals == {}


async def test_a_file_that_cannot_be_written_has_the_others_put_back(
    change, known, workspace: Path, monkeypatch: pytest.MonkeyPatch
):
    one, two = await known("one.py", "a = 1\n"), await known("two.py", "b = 2\n")
    two.chmod(stat.S_IRUSR)
    result = await change(("one.py", "a = 1", "c = 1"), ("two.py", "b = 2", "d = 2"))
    assert result.is_error
    assert (one.read_text(), two.read_text()) == ("a = 1\n", "b = 2\n")


async def test_bytes_outside_of_the_edits_stay(change, known):
    path = await known("mixed.txt", b"\xef\xbb\xbfone\r\ntwo\nthree\r\nfour")
    await change(("mixed.txt", "one", "1"), ("mixed.txt", "four", "4"))
    assert path.read_bytes() == b"\xef\xbb\xbf1\r\ntwo\nthree\r\n4"


async def test_a_file_that_changed_since_it_was_read_is_refused(change, known):
    path = await known("one.py", "a = 1\n")
    path.write_text("a = 1  # mine\n")
    result = await change(("one.py", "a = 1", "c = 1"))
    assert result.is_error
    assert "changed on disk" in result.model_text
    assert path.read_text() == "a = 1  # mine\n"


async def test_edits_that_undo_each_other_are_told(change, known):
    await known("one.py", "a = 1\n")
    result = await change(("one.py", "a = 1", "b = 1"), ("one.py", "b = 1", "a = 1"))
    assert result.model_text == "Nothing changed: the edits of one.py undo each other."


async def test_nothing_outside_of_the_workspace_is_changed(change, tmp_path: Path):
    outside = tmp_path / "outside.txt"
    outside.write_text("x")
    result = await change((str(outside), "x", "y"))
    assert result.is_error
    assert outside.read_text() == "x"


def test_the_gate_sees_an_edit_of_each_file(tool: MultiEditTool):
    meant, arguments = tool.acts_as(params_of(("a", "1", "2"), ("b", "1", "2"), ("a", "3", "4")))
    assert meant.name == "edit"
    assert arguments == {"paths": ["a", "b"]}


async def test_a_preview_changes_nothing(tool: MultiEditTool, context: ToolContext, known):
    path = await known("one.py", "a = 1\n")
    preview = tool.preview(params_of(("one.py", "a = 1", "b = 1")), context)
    assert [diff.after for diff in preview.diffs] == ["b = 1\n"]
    assert path.read_text() == "a = 1\n"


def test_no_edit_at_all_is_refused():
    with pytest.raises(ValidationError):
        MultiEditParams(edits=[])
