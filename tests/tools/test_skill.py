"""The tool that shows a skill."""

from agent.core.errors import UsageError
from agent.core.tool import ToolContext
from tools.skill import SkillParams, SkillTool


def answer(name: str, file: str) -> str:
    if name != "known":
        raise UsageError(f"There is no skill {name!r}.", "for people")
    return f"known {file}".strip()


async def run(tool_context: ToolContext, name: str, file: str | None = None):
    return await SkillTool("Skills:\n- known: Does it.", answer).run(
        SkillParams(name=name, file=file), tool_context
    )


async def test_skill_is_shown_also_with_a_slash_before_its_name(context: ToolContext):
    assert (await run(context, " /known ")).model_text == "known"
    assert (await run(context, "known", "a.md")).model_text == "known a.md"


async def test_unknown_skill_is_an_error_for_the_model(context: ToolContext):
    result = await run(context, "other")
    assert result.is_error
    assert result.model_text == "There is no skill 'other'."


def test_catalogue_is_part_of_what_the_model_sees():
    assert SkillTool("Skills:\n- known: Does it.", answer).description.endswith("- known: Does it.")
