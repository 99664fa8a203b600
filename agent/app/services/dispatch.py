"""The services of a live session that are no turn: `SessionHandle.command`.

| name | arguments | gives |
|---|---|---|
| `turns` | | a list of `TurnRow` |
| `history` | | a list of events: the conversation so far, to be drawn again |
| `context` | | a `ContextReport`: what fills the window, by kind |
| `diff` | | unified diff of what the file tools changed in this session, as text |
| `undo`, `redo` | | a `Stepped`: one turn of this session back, or forward again |
| `rewind_points` | | a list of `RewindPoint`: turns that can be gone back to |
| `rewind` | `to_turn`, `what` = chat, files or both (default) | a `RewindResult`; `history` is another then |
| `shell` | `command`, `context` (default true) | a `LoneCommand`; events show it meanwhile |
| `profile` | | a list of profile names |
| `profile` | `name` | a `ProfileSwitch`: what going over would cost; nothing is changed |
| `profile` | `name`, `apply` = true | the same, after going over |
| `server` | `action` = start or stop (optional) | a `ServerPanel` |
| `sessions` | | a list of `SessionSummary`, newest first |
| `rename` | `title` | the title as kept |
| `skills`, `skill`, `init` | | see `agent.app.services.extensions` |
| `blindness`, `keep_image` | | see `agent.app.services.pictures` |
| `commands`, `expand`, `resources` | | see `agent.app.mcp.offers` |
| `take_questions` | | from now on `question_asked` events are shown; until then questions are declined |
| `reply` | `question_id`, `action` = accept, decline or cancel, `values` by field | whether it was open |
| `mcp` | `name`, `action` (both optional) | see `agent.app.services.mcp` |
| `session_rules` | | rules that answers added to this session, as text |
| `forget_rule` | `rule` | takes one of them out again |
| `bench` | `options` (optional) | a `BenchRun`; events show it meanwhile, it takes a while |
| `compact` | `instruction`: what to keep above all (optional) | a `Compaction`; takes a while |
| `btw` | `question` | an `Aside`: its answer, which is no part of the conversation; takes a while |
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from agent.app.chat.live import LiveSession
from agent.app.chat.turn_log import TurnRow
from agent.app.mcp.offers import McpOffers
from agent.app.services.accounts import ContextReport, account_for
from agent.app.services.aside import Aside, ask_aside
from agent.app.services.compacting import Compaction, compact
from agent.app.services.extensions import ExtensionServices
from agent.app.services.lone_command import LoneCommand
from agent.app.services.mcp import McpServices
from agent.app.services.permissions import PermissionServices
from agent.app.services.person_shell import print_for_skill, run_for_person
from agent.app.services.pictures import PictureServices
from agent.app.services.profile_rows import ProfileRow, profile_rows
from agent.app.services.rewinding import RewindPoint, RewindResult, rewind, rewind_points
from agent.app.services.switching import ProfileSwitch, ServerPanel, go_over, panel_of, start_server
from agent.app.services.switching import stop_server as stop_this_server
from agent.core.cancel import unless_cancelled
from agent.core.errors import UsageError
from agent.core.events import Event
from agent.core.outside_text import shown_name
from agent.resources import state_folder
from agent.session.catalogue import SessionSummary, session_folders, summarise
from agent.session.diffs import session_diff
from agent.session.replay import events_in, still_there
from agent.session.stepping import Stepped, step_back, step_forward
from agent.session.store import load

if TYPE_CHECKING:
    from agent.app.services.session_bench import BenchRun

_LONGEST_TITLE = 200
Service = Callable[[Mapping[str, Any]], Awaitable[Any]]


class SessionServices:
    """Runs services by name. What changes files or the conversation waits for no turn: it is refused."""

    def __init__(self, live: LiveSession) -> None:
        self._live = live
        self._running: set[asyncio.Task[Any]] = set()
        extensions = ExtensionServices(live.extensions, partial(print_for_skill, live))
        offers = McpOffers(live.mcp, extensions)
        permissions = PermissionServices(live.gate, live.gate.rules)
        mcp = McpServices(live.mcp, lambda: live.turns.prefill_rate(live.keeper.serving.profile.name))
        pictures = PictureServices(live, self._as_a_turn)
        self._services: dict[str, Service] = {
            "turns": self._turns,
            "history": self._history,
            "context": self._context,
            "diff": self._diff,
            "undo": self._undo,
            "redo": self._redo,
            "rewind_points": self._rewind_points,
            "rewind": self._rewind,
            "shell": self._shell,
            "profile": self._profile,
            "server": self._server,
            "sessions": self._sessions,
            "rename": self._rename,
            "compact": self._compact,
            "btw": self._btw,
            "bench": self._bench,
            "blindness": pictures.blindness,
            "keep_image": pictures.keep_image,
            "skills": extensions.skills,
            "skill": extensions.skill,
            "commands": offers.commands,
            "expand": offers.expand,
            "resources": offers.resources,
            "take_questions": live.mcp.questions.take,
            "reply": live.mcp.questions.reply,
            "init": extensions.init,
            "mcp": mcp.mcp,
            "session_rules": permissions.session_rules,
            "forget_rule": permissions.forget_rule,
        }

    async def run(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Raises UsageError for an unknown service or wrong arguments."""
        service = self._services.get(name)
        if service is None:
            known = ", ".join(self._services)
            raise UsageError(f"there is no command {name!r}", f"the commands are: {known}")
        task = asyncio.ensure_future(service(arguments))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await task

    async def settled(self) -> None:
        """Ends what still runs, for the end of the session."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _turns(self, _: Mapping[str, Any]) -> list[TurnRow]:
        return list(self._live.turns.rows)

    async def _history(self, _: Mapping[str, Any]) -> list[Event]:
        path = self._live.record.store.path
        return await asyncio.to_thread(lambda: still_there(events_in(load(path))))

    async def _context(self, _: Mapping[str, Any]) -> ContextReport:
        return await account_for(self._live)

    async def _diff(self, _: Mapping[str, Any]) -> str:
        folder, workspace = self._live.record.store.folder, self._live.workspace
        return await asyncio.to_thread(session_diff, folder, workspace)

    async def _undo(self, _: Mapping[str, Any]) -> Stepped:
        return await self._step("undo", step_back, "undid your changes")

    async def _redo(self, _: Mapping[str, Any]) -> Stepped:
        return await self._step("redo", step_forward, "brought back the changes that were undone")

    async def _step(self, name: str, step: Callable[..., Stepped], what: str) -> Stepped:
        live = self._live
        self._refuse_while_running(name)
        workspace, own = live.workspace, live.record.store.id

        def work() -> Stepped:
            with live.record.ledger.own_changes(undoing=True):
                return step(state_folder(), workspace, own=own)

        async with live.changing:
            stepped = await asyncio.to_thread(work)
        files = (*stepped.restored, *stepped.deleted)
        if files:
            names = ", ".join(map(shown_name, files))
            live.inbox.note(f"(The user {what}: {names}. Read a file again before you change it.)")
        live.glance.refresh()
        return stepped

    async def _rewind_points(self, _: Mapping[str, Any]) -> list[RewindPoint]:
        return rewind_points(self._live)

    async def _rewind(self, arguments: Mapping[str, Any]) -> RewindResult:
        self._refuse_while_running("rewind")
        async with self._live.changing:
            return await rewind(self._live, arguments.get("to_turn"), arguments.get("what", "both"))

    async def _shell(self, arguments: Mapping[str, Any]) -> LoneCommand:
        command = _text(arguments, "command")
        return await run_for_person(self._live, command, in_context=bool(arguments.get("context", True)))

    async def _profile(self, arguments: Mapping[str, Any]) -> list[ProfileRow] | ProfileSwitch:
        if not arguments.get("name"):
            return await asyncio.to_thread(profile_rows, self._live.loaded.settings.models.folder)
        apply = bool(arguments.get("apply", False))
        if apply:
            self._refuse_while_running("profile")
        async with self._live.changing:
            return await go_over(self._live, _text(arguments, "name"), apply=apply)

    async def _server(self, arguments: Mapping[str, Any]) -> ServerPanel:
        action = arguments.get("action")
        if action not in (None, "start", "stop"):
            raise UsageError(f"the server has no action {action!r}", "the actions are start and stop")
        if action == "stop":
            self._refuse_while_running("server stop")
            async with self._live.changing:
                await stop_this_server(self._live)
        elif action == "start":
            await start_server(self._live)
        return await panel_of(self._live)

    async def _sessions(self, _: Mapping[str, Any]) -> list[SessionSummary]:
        workspace = self._live.workspace
        return await asyncio.to_thread(
            lambda: [summarise(folder) for folder in session_folders(state_folder(), workspace)]
        )

    async def _rename(self, arguments: Mapping[str, Any]) -> str:
        title = " ".join(_text(arguments, "title").split())[:_LONGEST_TITLE]
        self._live.record.store.append({"type": "title", "title": title})
        return title

    async def _compact(self, arguments: Mapping[str, Any]) -> Compaction:
        live = self._live
        self._refuse_while_running("compact")
        instruction = arguments.get("instruction") or ""
        if not isinstance(instruction, str):
            raise UsageError("what compact is to keep has to be a text")
        async with self._as_a_turn():
            engine = await unless_cancelled(live.keeper.ready(), live.cancel)
            return await compact(live, engine, instruction)

    async def _btw(self, arguments: Mapping[str, Any]) -> Aside:
        self._refuse_while_running("btw")
        async with self._as_a_turn():
            return await ask_aside(self._live, _text(arguments, "question"))

    @asynccontextmanager
    async def _as_a_turn(self) -> AsyncIterator[None]:
        """Around what asks the model: it listens to the cancel of turns, so that ends it here too."""
        live = self._live
        async with live.changing:
            live.cancel.clear()
            live.commands.add(live.cancel)
            try:
                yield
            finally:
                live.commands.discard(live.cancel)

    async def _bench(self, arguments: Mapping[str, Any]) -> "BenchRun":
        from agent.app.services.session_bench import bench_in_session, options_in

        self._refuse_while_running("bench")
        async with self._live.changing:
            return await bench_in_session(self._live, options_in(arguments))

    def _refuse_while_running(self, name: str) -> None:
        if self._live.is_running or self._live.commands:
            raise UsageError(f"{name} has to wait until nothing runs", "interrupt what runs, or let it end")


def _text(arguments: Mapping[str, Any], name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"the command needs a text {name!r}")
    return value.strip()
