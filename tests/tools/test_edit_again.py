"""The same edit that fails again is answered differently, and the third time blocked."""

from pathlib import Path

import pytest

from agent.core.tool import ToolContext, ToolResult
from tools.edit import EditParams, EditTool
from tools.read import ReadParams, ReadTool

CODE = "def add(a, b):\n    return a - b\n\n\ndef sub(a, b):\n    return a - b\n"
MISS = EditParams(path="calc.py", old="def sub(a, b):\n    return x - b", new="def sub(a, b):\n    return 0")


@pytest.fixture
def tool() -> EditTool:
    return EditTool()


@pytest.fixture
def edit(tool: EditTool, context: ToolContext):
    async def run(params: EditParams) -> ToolResult:
        return await tool.run(params, context)

    return run


@pytest.fixture
async def path(workspace: Path, context: ToolContext) -> Path:
    path = workspace / "calc.py"
    path.write_text(CODE, "utf-8")
    await ReadTool().run(ReadParams(path="calc.py"), context)
    return path


async def test_a_miss_is_answered_with_a_stronger_hint_and_then_blocked(edit, path: Path):
    said = [(await edit(MISS)).model_text for _ in range(4)]

    assert said[0].startswith("old was not found in calc.py. The nearest lines are:")
    assert said[1] == (
        "The same edit failed before: old is not in calc.py. "
        "Line 6 is '    return a - b', you wrote '    return x - b'. The file has:\n"
        "5\tdef sub(a, b):\n6\t    return a - b\n"
        "Do not send this edit again. Take fewer lines for old, one may do, letter by letter from above."
    )
    assert said[2].startswith("Blocked: this edit of calc.py failed twice")
    assert said[3] == said[2]
    assert path.read_text("utf-8") == CODE


async def test_an_old_text_in_several_places_is_shown_with_the_lines_before(edit, path: Path):
    params = EditParams(path="calc.py", old="    return a - b", new="    return 0")

    said = [(await edit(params)).model_text for _ in range(3)]

    assert "at lines 2, 6" in said[0]
    assert "1\tdef add(a, b):\n2\t    return a - b\n5\tdef sub(a, b):\n6\t    return a - b" in said[1]
    assert said[2].startswith("Blocked:")


async def test_another_edit_begins_anew(edit, path: Path):
    await edit(MISS)

    other = MISS.model_copy(update={"old": "def sub(a, b):\n    return y - b"})
    assert (await edit(other)).model_text.startswith("old was not found")


async def test_a_file_that_has_changed_begins_anew(edit, path: Path, context: ToolContext):
    await edit(MISS)
    path.write_text(CODE + "\n# more\n", "utf-8")
    await ReadTool().run(ReadParams(path="calc.py"), context)

    assert (await edit(MISS)).model_text.startswith("old was not found")


async def test_a_fresh_attempt_begins_anew(edit, tool: EditTool, path: Path):
    await edit(MISS)
    tool.start_over()

    assert (await edit(MISS)).model_text.startswith("old was not found")


async def test_a_preview_and_the_call_after_it_are_one_try(
    edit, tool: EditTool, path: Path, context: ToolContext
):
    foreseen = tool.preview(MISS, context)

    assert await edit(MISS) == foreseen
    assert tool.preview(MISS, context).model_text.startswith("The same edit failed before")
