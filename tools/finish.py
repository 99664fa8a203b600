"""The model's way to say that it is done."""

from pydantic import BaseModel

from agent.core.tool import Access, ToolContext, ToolResult
from tools._description import description_of


class FinishParams(BaseModel):
    answer: str


class FinishTool:
    name = "finish"
    params: type[BaseModel] = FinishParams
    access: Access = "finish"

    def __init__(self) -> None:
        self.description = description_of(self.name)

    async def run(self, params: FinishParams, context: ToolContext) -> ToolResult:
        return ToolResult(params.answer.strip())
