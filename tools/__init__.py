"""The built-in tools: one file each, with the text that the model sees in the `.md` of the same name."""

from agent.core.tool import Tool
from tools.edit import EditTool
from tools.finish import FinishTool
from tools.glob import GlobTool
from tools.read import ReadTool
from tools.search import SearchTool
from tools.shell import ShellTool
from tools.write import WriteTool


def built_in_tools() -> tuple[Tool, ...]:
    """One fresh instance of each tool, always in the same order, which the prompt cache relies on."""
    return (ReadTool(), SearchTool(), GlobTool(), EditTool(), WriteTool(), ShellTool(), FinishTool())
