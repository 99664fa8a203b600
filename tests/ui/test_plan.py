"""The plan that the model writes as a checklist."""

import pytest

from agent.core.events import AssistantReplied
from agent.ui.plan import PlanStep, checklist_in, updated
from agent.ui.screens.page import PageScreen
from agent.ui.widgets.plan_line import PlanLine
from tests.ui.rig import Rig, rest, settle

PLAN = "I would do this:\n\n- [ ] read [bold]it\n- [ ] write the test\n- [ ] mend it\n\nShall I?"


def steps(text: str) -> list[tuple[str, bool]]:
    return [(step.text, step.is_done) for step in checklist_in(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (PLAN, [("read [bold]it", False), ("write the test", False), ("mend it", False)]),
        ("1. [x] one\n2. [ ] two", [("one", True), ("two", False)]),
        ("* [X] one\n  more about it\n* [ ] two", [("one", True), ("two", False)]),
        ("- [ ] alone", []),
        ("- one\n- two", []),
        ("```\n- [ ] one\n- [ ] two\n```", []),
        ("- [ ] a\n- [ ] b\n\nOr rather:\n\n- [ ] c\n- [ ] d\n", [("c", False), ("d", False)]),
        ("", []),
    ],
)
def test_the_last_checklist_of_a_reply_is_the_plan(text: str, found: list[tuple[str, bool]]):
    assert steps(text) == found


def test_a_step_that_is_named_again_is_ticked_off_and_the_others_stay():
    plan = updated((), PLAN)
    plan = updated(plan, "Done with the first.\n\n- [x] Read [bold]it.")
    plan = updated(plan, "Nothing to tell.")
    assert [step.is_done for step in plan] == [True, False, False]


def test_a_list_of_other_steps_is_a_new_plan_and_a_new_step_joins():
    plan = updated((), PLAN)
    longer = updated(plan, "- [x] mend it\n- [ ] tell about it")
    other = updated(plan, "- [ ] sweep\n- [ ] mop")
    assert [step.text for step in longer][-2:] == ["mend it", "tell about it"]
    assert list(other) == [PlanStep("sweep", False), PlanStep("mop", False)]


async def test_the_plan_has_a_row_that_goes_when_all_is_done():
    rig = Rig()
    async with rig.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, rig)
        line = rig.app.main.query_one(PlanLine)
        assert not line.display
        rig.handle.emit(AssistantReplied(text=PLAN, reasoning=""))
        await rest(pilot)
        rig.handle.emit(AssistantReplied(text="- [x] read [bold]it", reasoning=""))
        await rest(pilot)
        assert line.display
        assert line.render().plain == "plan 1/3  ■□□  write the test"
        rig.app.submit("/plan", "now")
        await rest(pilot)
        assert isinstance(rig.app.screen, PageScreen)
        await pilot.press("escape")
        rig.handle.emit(AssistantReplied(text="- [x] write the test\n- [x] mend it", reasoning=""))
        await rest(pilot)
        assert not line.display


async def test_without_a_plan_the_command_says_how_to_come_to_one():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        rig.app.submit("/plan", "now")
        await rest(pilot)
        assert rig.lines == ["There is no plan yet. In plan mode (Shift+Tab) the model answers with one."]
