"""What slash commands may do, done with the application and its session."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from textual.content import Content

from agent.core.events import Notice
from agent.core.handle import SessionFacts, SessionMode
from agent.core.tool import FileDiff
from agent.ui.clipboard import Clipboard
from agent.ui.commands.command import Level
from agent.ui.options import Opening
from agent.ui.plan import Plan
from agent.ui.widgets.menu import Choice

if TYPE_CHECKING:
    from agent.ui.app import AgentApp
    from agent.ui.desk import Desk


class AppHost:
    """Implements `agent.ui.commands.command.Host`."""

    def __init__(self, app: "AgentApp", desk: "Desk") -> None:
        self._app = app
        self._desk = desk

    @property
    def facts(self) -> SessionFacts | None:
        return self._desk.facts

    @property
    def last_reply(self) -> str:
        return self._desk.bridge.last_reply

    @property
    def plan(self) -> Plan:
        return self._desk.bridge.plan

    async def service(self, name: str, /, **arguments: Any) -> Any:
        return await self._desk.live.service(name, **arguments)

    def tell(self, text: str, level: Level = "info") -> None:
        self._desk.show(Notice(text=text, level=level))

    def show_page(self, title: str, text: str | Content) -> None:
        from agent.ui.screens.page import PageScreen

        self._app.push_screen(PageScreen(title, text))

    def show_diffs(self, title: str, diffs: Sequence[FileDiff]) -> None:
        from agent.ui.request_text import diff_text
        from agent.ui.screens.page import PageScreen

        self._app.push_screen(PageScreen(title, diff_text(diffs)))

    async def pick(self, title: str, choices: Sequence[Choice]) -> Choice | None:
        from agent.ui.screens.picker import PickerScreen

        return await self._app.push_screen_wait(PickerScreen(title, choices))

    async def reopen(self, opening: Opening) -> None:
        await self._desk.reopen(opening)

    async def prepare(self, profile: str) -> bool:
        return await self._desk.preparation.is_ready_for(profile)

    async def redraw(self) -> None:
        await self._desk.redraw()

    def give_back(self, text: str) -> None:
        if text:
            self._app.prompt.put_before(text)

    def ask_model(self, text: str) -> None:
        self._desk.send(text, "now")

    def set_mode(self, mode: SessionMode) -> None:
        self._desk.set_mode(mode)

    def copy(self, text: str) -> str:
        return Clipboard(self._app.write_to_terminal, os.environ).copy(text)

    def themes(self) -> list[str]:
        return sorted(self._app.available_themes, key=lambda name: (not name.startswith("agent-"), name))

    def use_theme(self, name: str) -> None:
        self._app.theme = name
        save = self._app.options.save_setting
        if save is not None:
            save("ui.theme", name)

    def show_turns(self) -> None:
        self._app.action_turns()

    def key_table(self) -> Sequence[tuple[str, str, str]]:
        return self._app.key_table()

    def quit(self) -> None:
        self._app.run_worker(self._app.leave(), exit_on_error=False)
