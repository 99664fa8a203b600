"""A small model at work on a skill: the skill's tools, and an end only after it has looked."""

import pytest

from agent.core.events import ToolFinished, ToolOutcome
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
