"""The tool that hands work to a sub-agent."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from agent.core.tool import ToolContext, ToolResult
from tools.task import TaskParams, TaskTool


@dataclass
class Helper:
    asked: list[tuple[str, bool]] = field(default_factory=list)

    async def __call__(self, prompt: str, *, edit: bool, emit: Callable[[str], None]) -> ToolResult:
        self.asked.append((prompt, edit))
        emit("reading\n")
        return ToolResult("It is in a.py.")


async def test_report_of_the_sub_agent_is_the_result(context: ToolContext, emitted: list[str]):
    helper = Helper()
    result = await TaskTool().run(TaskParams(prompt=" Where is it? "), replace(context, delegate=helper))
    assert result.model_text == "It is in a.py."
    assert helper.asked == [("Where is it?", False)]
    assert emitted == ["reading\n"]


async def test_sub_agent_is_told_when_it_may_edit(context: ToolContext):
    helper = Helper()
    await TaskTool().run(TaskParams(prompt="Mend it.", edit=True), replace(context, delegate=helper))
    assert helper.asked == [("Mend it.", True)]


async def test_where_there_are_no_sub_agents_the_model_is_told_to_do_it_itself(context: ToolContext):
    result = await TaskTool().run(TaskParams(prompt="Where is it?"), context)
    assert result.is_error
    assert "Do it yourself" in result.model_text


async def test_empty_prompt_starts_no_sub_agent(context: ToolContext):
    helper = Helper()
    result = await TaskTool().run(TaskParams(prompt=" \n"), replace(context, delegate=helper))
    assert result.is_error
    assert helper.asked == []
