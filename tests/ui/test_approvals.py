"""The panel in which a call waits for a person."""

import pytest
from textual import events
from textual.widgets import Static

from agent.core.events import ApprovalRequest, ApprovalSettled
from agent.core.handle import Answer
from agent.core.tool import FileDiff
from agent.ui.request_text import described, diff_text, heading
from tests.ui.rig import SIZES, Rig, rest, settle, type_text

PYTEST = ApprovalRequest(
    request_id="r1",
    call_id="c1",
    tool="shell",
    arguments={"command": "cd src && pytest -q"},
    reason="no rule allows it",
    suggested_rule="shell(pytest *)",
    commands=("cd src", "pytest -q"),
)
EDIT = ApprovalRequest(
    request_id="r2",
    call_id="c2",
    tool="edit",
    arguments={"path": "a.py"},
    reason="mode ask",
    diffs=(FileDiff("a.py", "one\ntwo\n", "one\n2\n"),),
)


async def ask(rig: Rig, pilot, *requests: ApprovalRequest, seconds: float = 5.0) -> None:
    rig.handle.emit(*requests)
    await rest(pilot)
    rig.clock.now += seconds


@pytest.mark.parametrize("size", SIZES)
async def test_the_panel_stands_above_the_input_and_both_are_whole(size: tuple[int, int]):
    rig = Rig()
    async with rig.app.run_test(size=size) as pilot:
        await settle(pilot, rig)
        await ask(rig, pilot, PYTEST)
        panel, prompt = rig.panel.region, rig.app.prompt.region
        assert 0 <= panel.y < panel.bottom <= prompt.y
        choices = rig.app.query_one("#approval-choices", Static).region
        assert choices.height > 0
        assert choices.bottom <= panel.bottom


@pytest.mark.parametrize(
    ("key", "answer"),
    [
        ("y", Answer(kind="once", rule="shell(pytest *)")),
        ("enter", Answer(kind="once", rule="shell(pytest *)")),
        ("2", Answer(kind="session", rule="shell(pytest *)")),
        ("a", Answer(kind="always", rule="shell(pytest *)")),
    ],
)
async def test_one_key_allows(key: str, answer: Answer):
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await ask(rig, pilot, PYTEST)
        await pilot.press(key)
        await rest(pilot)
        assert rig.handle.answers == [("r1", answer)]
        assert not rig.panel.display
        assert rig.app.prompt.has_focus


async def test_a_denial_takes_a_reason_to_the_model():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await ask(rig, pilot, PYTEST)
        await pilot.press("n")
        await type_text(pilot, "use make")
        await pilot.press("enter")
        await rest(pilot)
        assert rig.handle.answers == [("r1", Answer(kind="deny", reason="use make"))]
        assert rig.app.prompt.has_focus


async def test_escape_in_the_reason_goes_back_to_the_choices():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await ask(rig, pilot, PYTEST)
        await pilot.press("n", "escape", "y")
        await rest(pilot)
        assert [answer.kind for _, answer in rig.handle.answers] == ["once"]


async def test_without_a_rule_only_once_and_no_are_offered():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await ask(rig, pilot, EDIT)
        await pilot.press("2", "3")
        await rest(pilot)
        assert rig.handle.answers == []
        assert rig.app.prompt.text == "23"


async def test_a_person_who_just_began_to_type_answers_nothing_by_accident():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await ask(rig, pilot, PYTEST, seconds=0.1)
        await type_text(pilot, "yes and no")
        await rest(pilot)
        assert rig.handle.answers == []
        assert rig.app.prompt.text == "yes and no"


async def test_a_panel_that_appears_while_typing_leaves_the_keys_where_they_are():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await type_text(pilot, "half a sen")
        await ask(rig, pilot, PYTEST)
        await type_text(pilot, "y")
        assert (rig.app.prompt.text, rig.handle.answers) == ("half a seny", [])
        await pilot.press("tab")
        await pilot.press("y")
        await rest(pilot)
        assert len(rig.handle.answers) == 1
        assert rig.app.prompt.text == "half a seny"


async def test_other_keys_and_pastes_go_into_the_input():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await ask(rig, pilot, PYTEST)
        await type_text(pilot, "what is this")
        assert rig.app.prompt.text == "what is this"


async def test_keys_after_the_answer_in_the_same_burst_are_typed():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await ask(rig, pilot, PYTEST)
        for key in "yhi":
            rig.app.post_message(events.Key(key, key))
        await rest(pilot)
        assert (len(rig.handle.answers), rig.app.prompt.text) == (1, "hi")


async def test_several_requests_are_answered_one_after_the_other():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await ask(rig, pilot, PYTEST, EDIT)
        await pilot.press("y")
        rig.clock.now += 5
        await pilot.press("1")
        await rest(pilot)
        assert [request for request, _ in rig.handle.answers] == ["r1", "r2"]


async def test_a_request_that_is_withdrawn_disappears():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await ask(rig, pilot, PYTEST)
        rig.handle.emit(ApprovalSettled(request_id="r1", outcome="withdrawn"))
        await rest(pilot)
        assert not rig.panel.display
        assert rig.app.prompt.has_focus


async def test_escape_on_the_panel_interrupts_the_turn():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await ask(rig, pilot, PYTEST)
        await pilot.press("escape")
        await rest(pilot)
        assert rig.handle.cancelled == 1


async def test_a_diff_longer_than_the_screen_is_scrolled():
    rig = Rig()
    long = FileDiff("a.py", None, "\n".join(f"line {number}" for number in range(200)))
    async with rig.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, rig)
        await ask(rig, pilot, ApprovalRequest(**{**fields(EDIT), "diffs": (long,)}))
        await pilot.press("pagedown")
        await rest(pilot)
        assert rig.app.query_one("#approval-detail").scroll_y > 0
        assert rig.app.prompt.region.bottom <= 24


def fields(request: ApprovalRequest) -> dict:
    return {name: getattr(request, name) for name in request.__slots__ if name != "type"}


def asks_to_run(command: str, *commands: str, **more: object) -> ApprovalRequest:
    arguments = {"command": command, **more}
    return ApprovalRequest(
        request_id="r", call_id="c", tool="shell", arguments=arguments, reason="", commands=commands
    )


@pytest.mark.parametrize(
    ("command", "commands", "shown"),
    [
        ("pytest -q", ("pytest -q",), ["$ pytest -q"]),
        ("cd src && pytest -q", ("cd src", "pytest -q"), ["$ cd src && pytest -q"]),
        ("make; ls | wc -l &", ("make", "ls", "wc -l"), ["$ make; ls | wc -l &"]),
        ("make\n\nls", ("make", "ls"), ["$ make", "  ", "  ls"]),
        ("unreadable (", (), ["$ unreadable ("]),
        ("", (), ["command: "]),
        (
            "bash -c 'rm x'",
            ("bash -c 'rm x'", "rm x"),
            ["$ bash -c 'rm x'", "$ rm x", "as written:", "  bash -c 'rm x'"],
        ),
        ("A=1 ls > out 2>&1", ("ls",), ["$ A=1 ls > out 2>&1"]),
        ("timeout 5 make", ("timeout 5 make", "make"), ["$ timeout 5 make"]),
        ("ls > $(x)", ("x", "ls"), ["$ x", "$ ls", "as written:", "  ls > $(x)"]),
        ("rm $(ls)", ("ls", "rm $(ls)"), ["$ ls", "$ rm $(ls)", "as written:", "  rm $(ls)"]),
    ],
)
def test_a_command_is_shown_once_and_taken_apart_where_it_hides_something(
    command: str, commands: tuple[str, ...], shown: list[str]
):
    assert described(asks_to_run(command, *commands)).plain.split("\n") == shown


@pytest.mark.parametrize(
    ("command", "commands", "question", "shown"),
    [
        ("cd src\npytest", ("cd src", "pytest"), "run this in src?", "$ pytest"),
        ("cd 'a b'\npytest", ("cd 'a b'", "pytest"), "run this in a b?", "$ pytest"),
        ("cd $HOME\npytest", ("cd $HOME", "pytest"), "run this?", "$ cd $HOME\n  pytest"),
        ("cd src", ("cd src",), "run this?", "$ cd src"),
    ],
)
def test_the_folder_that_a_command_begins_in_is_in_the_question(
    command: str, commands: tuple[str, ...], question: str, shown: str
):
    request = asks_to_run(command, *commands)
    assert question in heading(request, 0).plain
    assert described(request).plain == shown


def test_a_command_in_the_background_says_so():
    asked = heading(asks_to_run("npm start", "npm start", background=True), 0).plain
    assert "May I run this in the background?" in asked


def test_a_diff_shows_what_changes_with_signs():
    lines = described(EDIT).plain.split("\n")
    assert lines == ["a.py  changed  +1 −1  @@ -1,2 +1,2 @@", " one", "-two", "+2"]


def test_a_diff_of_several_places_or_of_a_whole_file_says_where_it_is_as_far_as_it_matters():
    old = [str(number) for number in range(30)]
    new = ["x", *old[1:29], "y"]
    diff = FileDiff("a", "\n".join(old), "\n".join(new))
    shown = diff_text(
        [diff, FileDiff("b", None, "one\n"), FileDiff("c", "one\n", None), FileDiff("d", "", "")]
    )
    places = [line for line in shown.plain.split("\n") if "@@" in line or line[0] in "abcd"]
    assert places == [
        "a  changed  +2 −2  @@ -1,4 +1,4 @@",
        "@@ -27,4 +27,4 @@",
        "b  new file  +1",
        "c  deleted  −1",
        "d  changed",
    ]


def test_a_file_that_loses_nearly_all_its_lines_says_so_above_the_diff_that_has_to_be_scrolled():
    diff = FileDiff("a.py", "\n".join(map(str, range(300))), "one\n")
    assert diff_text([diff]).plain.startswith("a.py  changed  +1 −300  @@ -1,300 +1 @@\n")


def test_nothing_in_a_request_steers_the_terminal():
    request = ApprovalRequest(
        request_id="r",
        call_id="c",
        tool="shell",
        arguments={"command": "echo \x1b[2J \u202e"},
        reason="\x07why",
        commands=("echo \x1b[2J",),
    )
    shown = described(request).plain + heading(request, 0).plain
    assert not any(character in shown for character in "\x1b\x07\u202e")


def test_how_many_wait_behind_is_said():
    assert "2 more wait" in heading(PYTEST, 2).plain


@pytest.mark.parametrize("size", [(60, 18), (80, 24), (120, 36)])
async def test_answers_reason_and_input_stay_in_sight_however_long_the_command_is(size: tuple[int, int]):
    command = "for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 1; done; python -c 'print(1)'; " * 6
    request = ApprovalRequest(
        request_id="r",
        call_id="c",
        tool="shell",
        arguments={"command": command},
        reason=f"needs permission: {command}",
        suggested_rule="shell(python *)",
    )
    rig = Rig()
    async with rig.app.run_test(size=size) as pilot:
        await settle(pilot, rig)
        rig.handle.emit(request)
        await rest(pilot)
        rig.clock.now += 1
        await pilot.press("4", *"use make")
        await rest(pilot)
        reason = rig.panel.query_one("#approval-reason")
        for widget in (rig.panel.query_one("#approval-choices"), reason, rig.app.prompt):
            x, y = widget.region.offset
            shown, _ = rig.app.main.get_widget_at(x + 1, y)
            assert shown is widget
