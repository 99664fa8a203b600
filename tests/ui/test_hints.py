"""The row of keys under the input."""

from typing import Any

from textual.app import App, ComposeResult

from agent.ui.widgets.hint_line import HintLine, hints_for

NAMES = {"next-mode": "Shift+Tab", "complete": "Tab", "help": "F1", "interrupt": "Esc"}


class HintApp(App[None]):
    CSS = "HintLine { height: 1; }"

    def compose(self) -> ComposeResult:
        yield HintLine()


async def row_at(width: int, *, is_more: bool) -> str:
    app = HintApp()
    async with app.run_test(size=(width, 4)) as pilot:
        line = app.query_one(HintLine)
        found = hints_for(
            lambda name: NAMES.get(name, name),
            is_running=False,
            is_asking=False,
            has_conversation=True,
            in_conversation=False,
        )
        line.show(found, is_more=is_more)
        await pilot.pause()
        return str(line.render())


async def test_help_stays_when_the_terminal_is_narrow_and_others_go_first():
    assert "F1 help" in await row_at(76, is_more=True)
    row = await row_at(40, is_more=False)
    assert row.startswith("/ commands")
    assert row.rstrip().endswith("F1 help")


async def test_a_row_that_holds_nothing_stays_empty():
    assert not (await row_at(5, is_more=False)).strip()


def test_while_a_command_of_the_persons_runs_the_row_says_what_ends_it_and_nothing_of_steering():
    found = hints_for(
        lambda name: NAMES.get(name, name),
        is_running=False,
        is_busy=True,
        is_asking=False,
        has_conversation=True,
        in_conversation=False,
    )
    assert found[:2] == [("Esc", "interrupts"), ("/", "commands")]
    assert "steers" not in [what for _, what in found]


def test_the_keys_of_a_question_are_those_of_the_part_that_has_the_focus():
    def keys(**focus: Any) -> list[tuple[str, str]]:
        return hints_for(
            lambda name: NAMES.get(name, name),
            is_running=True,
            is_asking=True,
            has_conversation=True,
            in_conversation=False,
            **focus,
        )

    assert ("Tab", "to the question") in keys()
    assert ("Tab", "to the input") in keys(in_question="choices")
    assert keys(in_question="reason")[:2] == [("Enter", "denies"), ("Esc", "back")]
