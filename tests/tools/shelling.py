"""What tests of the shell share."""

from collections.abc import AsyncIterator

import psutil

from agent.core.tool import ToolContext, ToolResult
from tools.shell import ShellParams, ShellTool


class Shell:
    """Runs commands as a model would."""

    def __init__(self, tool: ShellTool, context: ToolContext) -> None:
        self.tool = tool
        self.context = context

    async def __call__(
        self, command: str, *, seconds: int | None = None, background: bool = False
    ) -> ToolResult:
        params = ShellParams(command=command, timeout=seconds, background=background)
        return await self.tool.run(params, self.context)


async def opened(context: ToolContext) -> AsyncIterator[Shell]:
    tool = ShellTool()
    yield Shell(tool, context)
    tool.stop_background()


def is_running(process_id: int) -> bool:
    try:
        return psutil.Process(process_id).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
