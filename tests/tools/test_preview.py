"""What a change would be, told before it is made."""

from pathlib import Path

from agent.core.tool import ToolContext
from tools.edit import EditParams, EditTool
from tools.write import WriteParams, WriteTool


async def test_the_preview_of_an_edit_is_what_the_edit_then_does(workspace: Path, context: ToolContext):
    (workspace / "a.py").write_text("x = 1\n", "utf-8")
    tool, params = EditTool(), EditParams(path="a.py", old="x = 1", new="x = 2")
    before = tool.preview(params, context)
    assert (workspace / "a.py").read_text("utf-8") == "x = 1\n"
    assert await tool.run(params, context) == before


async def test_the_preview_of_a_write_is_what_the_write_then_does(workspace: Path, context: ToolContext):
    tool, params = WriteTool(), WriteParams(path="new/a.py", content="x = 1\n")
    before = tool.preview(params, context)
    assert not (workspace / "new").exists()
    assert await tool.run(params, context) == before


def test_a_preview_says_why_a_change_cannot_be_made(context: ToolContext):
    edit = EditTool().preview(EditParams(path="no.py", old="a", new="b"), context)
    write = WriteTool().preview(WriteParams(path="../out.py", content="x"), context)
    assert edit.is_error
    assert write.is_error
    assert "outside the workspace" in write.model_text
