"""A small model at work on a skill: the skill's tools, and an end only after it has looked."""

import pytest

from agent.core.events import ToolFinished, ToolOutcome, ToolStarted
from agent.core.narrow_guide import NarrowGuide


def finished(outcome: ToolOutcome) -> ToolFinished:
    return ToolFinished(call_id="1", tool="shell", outcome=outcome, text="", seconds=0.0)


def test_only_the_tools_of_the_skill_are_offered_at_first():
    assert NarrowGuide(["shell"]).offer().tools == {"shell"}


@pytest.mark.parametrize(("outcome", "may_end"), [("ok", True), ("error", False), ("denied", False)])
def test_work_may_end_once_a_tool_has_worked(outcome: ToolOutcome, may_end: bool):
    guide = NarrowGuide(["shell", "read"])
    guide.observe(finished(outcome))
    assert ("finish" in (guide.offer().tools or ())) is may_end


def test_model_that_asks_the_same_again_can_only_answer():
    guide = NarrowGuide(["shell"])
    for command in ("git diff", "git log", "git log"):
        assert guide.offer().tools != {"finish"}
        guide.observe(ToolStarted(call_id="1", tool="shell", arguments={"command": command}))
        guide.observe(finished("ok"))
    assert guide.offer().tools == {"finish"}


def test_work_may_end_at_once_where_output_came_with_the_task():
    assert NarrowGuide(["shell"], has_looked=True).offer().tools == {"shell", "finish"}


def test_calls_are_plain_all_along():
    guide = NarrowGuide(["read"])
    assert guide.offer().plain
    guide.observe(finished("ok"))
    assert guide.offer().plain
