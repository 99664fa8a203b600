"""A command that a person ran with `!`: one card that shows how it ended and what it printed."""

from agent.core.events import Event, ToolFinished, ToolOutput, ToolStarted, UserMessageAdded
from tests.ui.conversation.rig import screen_rows, shown


def run(command: str, output: str, ending: str = "exit code 0", *, live: bool = True) -> list[Event]:
    """The events of a command; those of a recorded session have no live output."""
    text = f"{output or '(no output)'}\n{ending}"
    printed: list[Event] = [ToolOutput(call_id="user-1", text=output)] if live and output else []
    return [
        ToolStarted(call_id="user-1", tool="shell", arguments={"command": command}),
        *printed,
        ToolFinished(call_id="user-1", tool="shell", outcome="ok", text=text, seconds=0.0),
        UserMessageAdded(text=f"I ran `{command}` myself:\n{text}", is_note=True),
    ]


async def rows_of(events: list[Event]) -> list[str]:
    async with shown(events) as (view, _):
        return [row.strip() for row in screen_rows(view) if row.strip()]


async def test_a_command_that_fails_shows_its_exit_code_and_the_sign_of_an_error():
    assert await rows_of(run("false", "", "exit code 1")) == ["✗ shell  false  exit code 1"]


async def test_what_a_command_printed_is_shown_open():
    assert await rows_of(run("ls", "a.py\nb.py")) == ["✓ shell  ls", "│ a.py", "│ b.py"]


async def test_much_output_is_cut_after_twenty_rows():
    rows = await rows_of(run("seq 50", "\n".join(map(str, range(50)))))
    assert rows[-2:] == ["│ 19", "│ … 30 more lines"]


async def test_a_recorded_command_looks_as_it_did_when_it_ran():
    for case in (("ls", "a.py\nb.py"), ("make", "no rule", "exit code 2")):
        assert await rows_of(run(*case, live=False)) == await rows_of(run(*case))
