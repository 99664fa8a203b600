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


def built_in_tools(edit_form: EditForm = "replace", *, several_edits: bool = False) -> tuple[Tool, ...]:
    """One fresh instance of each tool, always in the same order, which the prompt cache relies on.

    `several_edits` adds the tool that makes many replacements at once, where text is replaced at all.
    """
    editing = _editing(edit_form, several_edits)
    return (ReadTool(), SearchTool(), GlobTool(), *editing, ShellTool(), FinishTool())


def _editing(form: EditForm, several: bool) -> tuple[Tool, ...]:
    if form == "replace" and several:
        from tools.multi_edit import MultiEditTool

        return EditTool(), MultiEditTool(), WriteTool()
    if form == "replace":
        return EditTool(), WriteTool()
    if form == "whole":
        return (WriteTool(for_changes=None),)
    from tools.patch import PatchTool

    return PatchTool(), WriteTool(for_changes="apply_patch")
