"""The built-in tools: one file each, with the text that the model sees in the `.md` of the same name."""

from typing import Literal

from agent.core.tool import Tool
from tools.edit import EditTool
from tools.finish import FinishTool
from tools.glob import GlobTool
from tools.read import ReadTool
from tools.search import SearchTool
from tools.shell import ShellTool
from tools.write import WriteTool

EditForm = Literal["replace", "patch", "whole"]
"""How a model changes files: by text to replace, by a patch, or by writing them as a whole."""


def built_in_tools(edit_form: EditForm = "replace") -> tuple[Tool, ...]:
    """One fresh instance of each tool, always in the same order, which the prompt cache relies on."""
    return (ReadTool(), SearchTool(), GlobTool(), *_editing(edit_form), ShellTool(), FinishTool())


def _editing(form: EditForm) -> tuple[Tool, ...]:
    if form == "replace":
        return EditTool(), WriteTool()
    if form == "whole":
        return (WriteTool(for_changes=None),)
    from tools.patch import PatchTool

    return PatchTool(), WriteTool(for_changes="apply_patch")
