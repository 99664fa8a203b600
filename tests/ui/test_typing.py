"""What is typed on the main screen: lines, history, drafts, pastes, completion, keys."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from textual import events

from agent.config.ui_keys import UI_ACTIONS
from agent.core.events import (
    TurnFinished,
)
from agent.core.stats import StepStats
from agent.ui.entry.draft import Draft, DraftFile
from agent.ui.screens.page import PageScreen
from agent.ui.screens.picker import PickerScreen
from tests.fakes.fake_handle import FakeHandle
from tests.ui.rig import Rig, done_or_asking, rest, settle, type_text, until

DONE = TurnFinished(reason="done", answer="fine", detail="", steps=1, stats=StepStats())


async def test_keys_that_come_in_one_burst_keep_their_order():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        for key in ["a", "b", "backspace", "c", "enter", "d", "left", "e"]:
            rig.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await rest(pilot)
        assert rig.handle.prompts == ["ac"]
        assert rig.app.prompt.text == "ed"


async def test_keys_are_handled_while_the_files_of_a_huge_repository_are_listed():
    listing, go = asyncio.Event(), asyncio.Event()

    async def list_files(_arguments: Mapping[str, Any]) -> list[str]:
        listing.set()
        await go.wait()
        return ["src/app.py", "src/other.py"]

    rig = Rig(options={"services": {"files": list_files}})
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await pilot.press("@", "o", "t")
        await asyncio.wait_for(listing.wait(), 30)
        await pilot.press("x", "backspace", "h", "left", "right", "e", "r")
        assert rig.app.prompt.text == "@other"
        assert not rig.app.menu.display
        go.set()
        await rest(pilot)
        assert rig.app.menu.display
        await pilot.press("enter", "enter")
        await rest(pilot)
        assert rig.handle.prompts == ["@src/other.py "]


async def test_enter_behind_a_file_that_is_typed_to_its_end_sends_the_message():
    rig = Rig(handles=[FakeHandle(services={"files": ["app.py", "app.pyi"]})])
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await type_text(pilot, "see @app.py")
        await rest(pilot)
        assert rig.app.menu.display
        await pilot.press("enter")
        await rest(pilot)
        assert rig.handle.prompts == ["see @app.py"]


async def test_a_tab_that_is_ahead_of_the_menu_completes_as_soon_as_it_opens():
    go = asyncio.Event()

    async def list_files(_arguments: Mapping[str, Any]) -> list[str]:
        await go.wait()
        return ["src/app.py", "src/other.py"]

    rig = Rig(options={"services": {"files": list_files}})
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await pilot.press("@", "o", "t", "h", "tab")
        assert rig.app.prompt.has_focus
        go.set()
        await rest(pilot)
        assert rig.app.prompt.text == "@src/other.py "


async def test_a_tab_that_is_ahead_of_the_menu_is_forgotten_when_something_else_is_typed():
    go = asyncio.Event()

    async def list_files(_arguments: Mapping[str, Any]) -> list[str]:
        await go.wait()
        return ["src/app.py", "src/other.py"]

    rig = Rig(options={"services": {"files": list_files}})
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await pilot.press("@", "o", "tab", "t")
        go.set()
        await rest(pilot)
        assert rig.app.prompt.text == "@ot"


@pytest.mark.parametrize("key", ["ctrl+j", "shift+enter"])
async def test_a_new_line_has_keys_of_its_own(key: str):
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await pilot.press("a", key, "b", "enter")
        await rest(pilot)
        assert rig.handle.prompts == ["a\nb"]


async def test_a_backslash_before_enter_makes_a_new_line():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await pilot.press("a", "backslash", "enter", "b", "enter")
        await rest(pilot)
        assert rig.handle.prompts == ["a\nb"]


async def test_control_d_quits_only_when_nothing_is_typed():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await pilot.press("x", "left", "ctrl+d")
        assert (rig.app.prompt.text, rig.handle.is_closed) == ("", False)
        await pilot.press("ctrl+d")
        await rest(pilot)
    assert rig.handle.is_closed


async def test_history_of_the_project_is_there_in_the_next_session(tmp_path: Path):
    for step in ("first", "second"):
        rig = Rig(options={"state_folder": tmp_path})
        async with rig.app.run_test() as pilot:
            await settle(pilot, rig)
            if step == "first":
                await type_text(pilot, "remember me")
                await pilot.press("enter")
                await rest(pilot)
            else:
                await pilot.press("up")
                assert rig.app.prompt.text == "remember me"


async def test_history_is_searched_with_control_r(tmp_path: Path):
    (tmp_path / "history.jsonl").write_text('{"text": "make the tea"}\n{"text": "other"}\n', encoding="utf-8")
    rig = Rig(options={"state_folder": tmp_path})
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await pilot.press("ctrl+r")
        await until(pilot, lambda: isinstance(rig.app.screen, PickerScreen))
        await type_text(pilot, "tea")
        await pilot.press("enter")
        await rest(pilot)
        assert rig.app.prompt.text == "make the tea"


async def test_a_draft_comes_back_after_a_crash(tmp_path: Path):
    (tmp_path / "draft-999999999.json").write_text('{"text": "half", "pastes": {}}', encoding="utf-8")
    rig = Rig(options={"state_folder": tmp_path})
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        assert rig.app.prompt.text == "half"


class EmptiesItsQueue(FakeHandle):
    """As a real session does when it is closed; the program hears of it before the session is gone."""

    async def close(self) -> None:
        self.take_back_queued()
        for _ in range(10):
            await asyncio.sleep(0)
        await super().close()


async def test_what_is_queued_when_the_program_is_left_comes_back(tmp_path: Path):
    rig = Rig(handles=[EmptiesItsQueue()], options={"state_folder": tmp_path})
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        rig.handle.know(is_running=True)
        rig.handle.follow_up("And then")
        await rest(pilot)
        await rig.app.leave()
    assert DraftFile(tmp_path, os.getpid()).take_abandoned() == Draft("And then", {})


async def test_a_long_paste_is_folded_and_sent_whole():
    rig = Rig()
    text = "\n".join(str(number) for number in range(50))
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        rig.app.post_message(events.Paste(text.replace("\n", "\r")))
        await rest(pilot)
        assert rig.app.prompt.text == "[paste 1: 50 lines]"
        await pilot.press("enter")
        await rest(pilot)
        assert rig.handle.prompts == [text]


async def test_backspace_removes_a_whole_placeholder():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        rig.app.post_message(events.Paste("x\n" * 50))
        await pilot.press("backspace")
        await rest(pilot)
        assert rig.app.prompt.text == ""


async def test_the_menu_completes_and_runs_a_command():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await type_text(pilot, "/hel")
        await rest(pilot)
        assert rig.app.menu.choice is not None
        assert rig.app.menu.choice.value == "/help"
        await pilot.press("enter")
        await rest(pilot)
        assert isinstance(rig.app.screen, PageScreen)
        assert rig.handle.prompts == []


async def test_a_command_typed_faster_than_its_menu_opens_is_run():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        for key in ["slash", *"copy", "enter"]:
            rig.app.post_message(events.Key(key, "/" if key == "slash" else key if len(key) == 1 else None))
        await rest(pilot)
        assert rig.lines == ["There is no reply to copy yet."]


async def test_escape_closes_the_menu_before_it_interrupts():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await type_text(pilot, "/")
        await rest(pilot)
        await pilot.press("escape")
        assert (rig.app.menu.display, rig.handle.cancelled) == (False, 0)


async def test_an_unknown_command_names_the_closest_one():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await type_text(pilot, "/resme x")
        await pilot.press("enter")
        await rest(pilot)
        assert "did you mean /resume?" in rig.lines[0]


async def test_a_path_at_the_beginning_is_a_message():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        rig.app.submit("/etc/hosts is wrong", "now")
        assert rig.handle.prompts == ["/etc/hosts is wrong"]


async def test_a_file_is_completed_after_an_at_sign():
    rig = Rig(handles=[FakeHandle(services={"files": ["src/app.py", "src/other.py"]})])
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await type_text(pilot, "see @app")
        await rest(pilot)
        await pilot.press("enter")
        await rest(pilot)
        assert (rig.app.prompt.text, rig.handle.prompts) == ("see @src/app.py ", [])


async def test_keys_can_be_given_other_meanings():
    rig = Rig(options={"keys": {"send": "ctrl+s", "newline": "enter"}})
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await pilot.press("a", "enter", "b", "ctrl+s")
        await rest(pilot)
        assert rig.handle.prompts == ["a\nb"]


def test_settings_know_the_names_of_all_keys():
    names = [name for name, _, _ in Rig().app.key_table()]
    assert sorted(names) == sorted(UI_ACTIONS)


async def test_the_palette_runs_a_command():
    rig = Rig()
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await pilot.press("ctrl+p")
        await done_or_asking(pilot)
        await type_text(pilot, "copy")
        await pilot.press("enter")
        await rest(pilot)
        assert rig.lines == ["There is no reply to copy yet."]
