"""A form of an MCP server, on the screen and in line mode."""

from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from agent.core.events import QuestionAsked, QuestionSettled
from agent.core.questions import QuestionField, parsed
from agent.ui.plain_form import PlainForms
from agent.ui.screens.question import QuestionScreen
from tests.ui.rig import Rig, settle, until

NAME = QuestionField(name="name", kind="text", title="Your name", required=True, default="Ada")
AGE = QuestionField(name="age", kind="integer", title="Age")
SURE = QuestionField(name="sure", kind="yes-no", title="Sure", default=True)
COLOUR = QuestionField(
    name="colour", kind="choice", title="Colour", options=(("r", "red"), ("g", "green")), default="g"
)
FORM = QuestionAsked(question_id="q1", source="forge", text="Who are you?", fields=(NAME, AGE, SURE, COLOUR))
SIGN = QuestionAsked(question_id="q2", source="forge", text="Sign", url="https://example.org/sign")


async def until_asked(pilot: Pilot[Any], rig: Rig, question: QuestionAsked) -> QuestionScreen:
    rig.handle.emit(question)
    await until(pilot, lambda: isinstance(rig.app.screen, QuestionScreen))
    screen = rig.app.screen
    assert isinstance(screen, QuestionScreen)
    await until(pilot, lambda: screen.query("#question-scroll"))
    return screen


async def until_gone(pilot: Pilot[Any], rig: Rig) -> None:
    await until(pilot, lambda: len(rig.app.screen_stack) == 1 and rig.handle.commands)


def rig_that_replies() -> Rig:
    rig = Rig()
    rig.handles[0].services["reply"] = True
    return rig


async def test_a_form_is_filled_in_line_by_line_and_sent():
    rig = rig_that_replies()
    async with rig.app.run_test(size=(100, 30)) as pilot:
        await settle(pilot, rig)
        screen = await until_asked(pilot, rig, FORM)
        assert [entry.value for entry in screen.query(Input)] == ["Ada", "", "yes", "g"]
        await pilot.press("enter", *"37", "enter", "enter", "enter")
        await until_gone(pilot, rig)
    values = {"name": "Ada", "age": 37, "sure": True, "colour": "g"}
    assert rig.handle.commands[-1] == ("reply", {"question_id": "q1", "action": "accept", "values": values})


async def test_what_does_not_fit_is_said_at_its_field_and_nothing_is_sent():
    rig = rig_that_replies()
    async with rig.app.run_test(size=(100, 30)) as pilot:
        await settle(pilot, rig)
        screen = await until_asked(pilot, rig, FORM)
        await pilot.press("enter", *"old", "enter", "enter", "enter")
        problem = screen.query_one("#question-problem", Static)
        assert "Age: a whole number" in str(problem.render())
        assert screen.focused is screen.query_one("#question-1")
        assert not rig.handle.commands


@pytest.mark.parametrize(
    ("key", "action"), [("escape", "cancel"), ("ctrl+n", "decline"), ("enter", "accept")]
)
async def test_an_address_is_shown_and_answered_with_one_key(key: str, action: str):
    rig = rig_that_replies()
    async with rig.app.run_test(size=(100, 30)) as pilot:
        await settle(pilot, rig)
        screen = await until_asked(pilot, rig, SIGN)
        shown = " ".join(str(static.render()) for static in screen.query(Static))
        assert "https://example.org/sign" in shown
        await pilot.press(key)
        await until_gone(pilot, rig)
    assert rig.handle.commands[-1] == ("reply", {"question_id": "q2", "action": action, "values": {}})


async def test_a_question_that_is_taken_back_closes_its_form():
    rig = rig_that_replies()
    async with rig.app.run_test(size=(100, 30)) as pilot:
        await settle(pilot, rig)
        await until_asked(pilot, rig, FORM)
        rig.handle.emit(QuestionSettled(question_id="q1", outcome="withdrawn"))
        await until(pilot, lambda: len(rig.app.screen_stack) == 1)
        assert len(rig.app.screen_stack) == 1
        assert not rig.handle.commands


class Lines:
    def __init__(self) -> None:
        self.said: list[str] = []
        self.replies: list[dict[str, Any]] = []
        self.forms = PlainForms(self.said.append, self._service)

    async def _service(self, _: str, **arguments: Any) -> bool:
        self.replies.append(arguments)
        return True


async def test_in_line_mode_an_empty_line_takes_what_is_proposed():
    lines = Lines()
    lines.forms.add(FORM)
    for line in ("yes", "", "old", "37", "no", "red"):
        await lines.forms.take(line)
    values = {"age": 37, "sure": False, "colour": "r"}
    assert lines.replies == [{"question_id": "q1", "action": "accept", "values": values}]
    assert lines.said[1:] == [
        "yes to answer 4 fields, or no",
        "Your name [Ada]:",
        "Age:",
        "a whole number, please:",
        "Sure [True]:",
        "Colour (r, g) [g]:",
    ]


async def test_in_line_mode_anything_but_yes_declines():
    lines = Lines()
    lines.forms.add(SIGN)
    await lines.forms.take("why?")
    assert lines.replies[0]["action"] == "decline"


def test_several_choices_are_written_with_commas():
    field = QuestionField(name="x", kind="choices", title="X", options=(("a", "A"), ("b", "B")))
    assert parsed("a, B", field) == ["a", "b"]
    with pytest.raises(ValueError, match="one of a, b"):
        parsed("c", field)
