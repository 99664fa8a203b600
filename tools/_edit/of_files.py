"""A call that changes several files at once, as the gate sees it: an `edit` of each of them."""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from agent.core.tool import Access, ToolContext, ToolResult


class _Params(BaseModel):
    paths: list[str]


class EditOfFiles:
    """Stands for a call of `tool` with the parameters `meant`."""

    name = "edit"
    description = ""
    params: type[BaseModel] = _Params
    access: Access = "write"

    def __init__(self, tool: Any, meant: BaseModel) -> None:
        self._tool = tool
        self._meant = meant
        self.called_as: str = tool.name

    def preview(self, params: BaseModel, context: ToolContext) -> ToolResult:
        return self._tool.preview(self._meant, context)

    async def run(self, params: BaseModel, context: ToolContext) -> ToolResult:
        return await self._tool.run(self._meant, context)


def paths_once(paths: Sequence[str]) -> list[str]:
    """Each path once, in order."""
    return list(dict.fromkeys(paths))
