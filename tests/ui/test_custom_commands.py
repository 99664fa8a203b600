"""What follows a slash and is no command of the interface may be a custom one, or a skill."""

import io
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.core.events import TurnFinished
from agent.core.stats import StepStats
from agent.ui.commands.catalogue import CustomCommand, custom_choices, looks_like_command
from agent.ui.options import Opening, UiOptions
from agent.ui.plain import run_plain
from tests.fakes.fake_handle import FakeHandle
from tests.ui.rig import Rig, rest, settle, type_text

DONE = TurnFinished(reason="done", answer="ok", detail="", steps=1, stats=StepStats())


class Expanding(FakeHandle):
    """Ends each turn at once."""

    def prompt(self, text: str) -> None:
        self.prompts.append(text)
        self.emit(DONE)


async def run(handle: FakeHandle, text: str) -> str:
    async def open_session(_: Opening) -> FakeHandle:
        return handle

    output = io.StringIO()
    options = UiOptions(workspace=Path("/home/me"), open_session=open_session)
    assert await run_plain(options, io.StringIO(text), output) == 0
    return output.getvalue()


async def test_custom_command_is_expanded_and_sent():
    handle = Expanding(services={"expand": "Fix issue 7."})
    await run(handle, "/db:fix-2 7 now\n")
    assert ("expand", {"name": "db:fix-2", "arguments": "7 now"}) in handle.commands
    assert handle.prompts == ["Fix issue 7."]


async def test_init_sends_what_the_session_words():
    handle = Expanding(services={"init": "Write AGENTS.md."})
    await run(handle, "/init\n")
    assert handle.prompts == ["Write AGENTS.md."]


async def test_what_nobody_knows_names_the_closest_command():
    handle = Expanding()
    text = await run(handle, "/resum\n")
    assert "did you mean /resume?" in text
    assert handle.prompts == []


@pytest.mark.parametrize(
    ("text", "is_command"),
    [
        ("/fix-2 it", True),
        ("/db:migrate", True),
        ("/etc/hosts is wrong", False),
        ("/", False),
        ("/2 of them", False),
        ("/fix\nthis", False),
        ("/a:", False),
    ],
)
def test_only_a_name_behind_the_slash_is_a_command(text: str, is_command: bool):
    assert looks_like_command(text) is is_command


@dataclass
class Row:
    name: str
    summary: str
    takes: str


async def test_custom_commands_and_skills_are_in_the_menu():
    rows = [
        Row("review", "look at a change", ""),
        Row("fix", "mend an issue", "number"),
        Row("help", "x", ""),
    ]
    rig = Rig(handles=[FakeHandle(services={"commands": rows})])
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await type_text(pilot, "/revi")
        await rest(pilot)
        chosen = rig.app.menu.choice
        assert chosen is not None
        assert (chosen.value, chosen.note) == ("/review", "look at a change")
    known = [CustomCommand(row.name, row.summary, row.takes) for row in rows]
    assert [one.value for one in custom_choices("", known)] == ["/review", "/fix "]
