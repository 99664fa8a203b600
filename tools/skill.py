"""Showing the model what a skill says, when it is about to do such work."""

from collections.abc import Callable

from pydantic import BaseModel

from agent.core.errors import AgentError
from agent.core.tool import Access, ToolContext, ToolResult
from tools._description import description_of

OpenSkill = Callable[[str, str], str]
"""Text for a skill's name and the name of one of its files ("" for the skill itself). Raises AgentError."""


class SkillParams(BaseModel):
    name: str
    file: str | None = None


class SkillTool:
    """`catalogue` are names and descriptions; it is part of what the model sees, so it never changes."""

    name = "skill"
    params: type[BaseModel] = SkillParams
    access: Access = "read"

    def __init__(self, catalogue: str, open_skill: OpenSkill) -> None:
        self.description = f"{description_of(self.name)}\n{catalogue}".strip()
        self._open = open_skill

    async def run(self, params: SkillParams, context: ToolContext) -> ToolResult:
        name = params.name.strip().removeprefix("/")
        try:
            return ToolResult(self._open(name, (params.file or "").strip()))
        except AgentError as error:
            return ToolResult(error.message, is_error=True)
