"""A tool around another one: to the model and the gate it is the same tool."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from agent.core.tool import Access, Tool, ToolContext, ToolResult


class ToolAround:
    """Everything but `run`, which the classes below it have of their own."""

    params: type[BaseModel]
    access: Access

    def __init__(self, tool: Tool) -> None:
        self.name = tool.name
        self.description = tool.description
        self.params = tool.params
        self.access = tool.access
        self._tool = tool

    def preview(self, params: Any, context: ToolContext) -> ToolResult | None:
        """See `Tool.preview` of the file tools; None where the tool cannot tell beforehand."""
        preview = getattr(self._tool, "preview", None)
        return preview(params, context) if preview is not None else None

    def acts_as(self, params: Any) -> tuple[Tool, Mapping[str, Any]] | ToolResult | None:
        """See `core.tool.CallsAnother`; None where the tool calls no other one."""
        acts_as = getattr(self._tool, "acts_as", None)
        return acts_as(params) if acts_as is not None else None

    def reaches(self, name: str) -> bool:
        reaches = getattr(self._tool, "reaches", None)
        return reaches is not None and reaches(name)

    def start_over(self) -> None:
        """Passed on to a tool that remembers what was tried; see `EditTool.start_over`."""
        start_over = getattr(self._tool, "start_over", None)
        if start_over is not None:
            start_over()
