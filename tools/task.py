"""Handing a piece of work to a sub-agent, whose reading stays out of this conversation."""

from pydantic import BaseModel

from agent.core.tool import Access, ToolContext, ToolResult
from tools._description import description_of


class TaskParams(BaseModel):
    prompt: str
    edit: bool = False


class TaskTool:
    """Starting one changes nothing; each call that the sub-agent makes is judged like one of the model's."""

    name = "task"
    params: type[BaseModel] = TaskParams
    access: Access = "read"

    def __init__(self) -> None:
        self.description = description_of(self.name)

    async def run(self, params: TaskParams, context: ToolContext) -> ToolResult:
        if context.delegate is None:
            return ToolResult("There are no sub-agents here. Do it yourself.", is_error=True)
        if not params.prompt.strip():
            return ToolResult("The prompt is empty. Say what to find out and what to report.", is_error=True)
        return await context.delegate(params.prompt.strip(), edit=params.edit, emit=context.emit)
