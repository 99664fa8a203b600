"""What happens when the original of a file cannot be kept."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent.core.errors import AgentError
from agent.core.tool import ToolContext
from tests.tools.ledger import MemoryLedger
from tools.edit import EditParams, EditTool
from tools.write import WriteParams, WriteTool


class FullLedger(MemoryLedger):
    def before_change(self, path: Path) -> None:
        raise AgentError(f"cannot keep {path.name}: no space left")


@pytest.fixture
def full(context: ToolContext) -> ToolContext:
    return replace(context, ledger=FullLedger())


async def test_an_edit_is_not_made(full: ToolContext):
    (full.workspace / "a.py").write_text("one\n", encoding="utf-8")

    result = await EditTool().run(EditParams(path="a.py", old="one", new="two"), full)

    assert (result.is_error, result.model_text) == (True, "cannot keep a.py: no space left")
    assert (full.workspace / "a.py").read_text(encoding="utf-8") == "one\n"


async def test_a_file_is_not_written(full: ToolContext):
    result = await WriteTool().run(WriteParams(path="a.py", content="one\n"), full)

    assert (result.is_error, result.model_text) == (True, "cannot keep a.py: no space left")
    assert list(full.workspace.iterdir()) == []
