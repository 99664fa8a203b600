"""Gives the terminal interface what it needs: how sessions are opened, services, settings of its looks."""

import asyncio
import gc
import hashlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.core.errors import AgentError, UsageError
from agent.resources import config_folder, data_folder, state_folder

if TYPE_CHECKING:
    from agent.app.services.profile_rows import ProfileRow
    from agent.config.load import LoadedSettings
    from agent.core.handle import SessionHandle, SessionMode
    from agent.ui.options import Notify, Opening, UiOptions

MOST_FILES = 100_000
# For the garbage collector: how many new objects there are before the youngest are looked at, how many such
# looks before the second youngest are, and so many of those before all are that it never comes to that.
_YOUNG_OBJECTS, _YOUNG_COLLECTIONS, _NEVER_BY_ITSELF = 2_000, 10, 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontRequest:
    """What the command line asks for. `resume` is an id, or `last`; `prompt` is sent first."""

    workspace: Path
    profile: str = ""
    mode: "SessionMode | None" = None
    resume: str = ""
    fork: bool = False
    plain: bool = False
    prompt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """The `ui` table of the person's own file and of the environment."""

    theme: str = ""
    mouse: bool = True
    notify: "Notify" = "bell"
    long_turn_seconds: float = 20.0
    keys: Mapping[str, str] = field(default_factory=dict)


def run_front(request: FrontRequest) -> int:
    """Opens the interface and returns the exit code when it is closed.

    Raises UsageError: the session to go on with is not there, or is open elsewhere.
    """
    if request.resume:
        _require_session(request)
    looks = read_looks(os.environ)
    options = options_for(request, looks)
    if request.plain:
        from agent.ui.plain import run_plain

        return asyncio.run(run_plain(options, sys.stdin, sys.stdout))
    from agent.ui.app import AgentApp

    app = AgentApp(options)
    session_id = app.run(mouse=looks.mouse)
    if app.return_code:
        return app.return_code
    line = resume_line(request.workspace, session_id or "")
    if line:
        print(line, file=sys.stderr)
    return 0


def _require_session(request: FrontRequest) -> None:
    """Told in the shell: a screen that opens only to say so would be in the way."""
    from agent.app.chat.record import chosen_session
    from agent.session.store import require_closed

    folder = chosen_session(request.workspace, request.resume, allow_open=request.fork)
    if not request.fork:
        require_closed(folder)


def resume_line(workspace: Path, session_id: str) -> str:
    """How to go on with a session that was closed; empty where nothing happened in it, which leaves none."""
    from agent.session.catalogue import find_session

    try:
        return f"agent --resume {find_session(state_folder(), workspace, session_id).name}"
    except AgentError:
        return ""


def read_looks(environment: Mapping[str, str]) -> Looks:
    """The looks, without loading the settings, which takes longer than all else before the first paint.

    What is wrong in the file counts as not said here; opening the session reports it.
    """
    table: dict[str, Any] = {}
    try:
        content = (config_folder(environment) / "config.toml").read_text(encoding="utf-8-sig")
        if "ui" in content:
            import tomllib

            found = tomllib.loads(content).get("ui")
            table = found if isinstance(found, dict) else {}
    except (OSError, ValueError, RecursionError, AgentError):
        table = {}
    for name in ("theme", "notify"):
        table[name] = environment.get(f"AGENT_UI_{name.upper()}") or table.get(name)
    mouse = environment.get("AGENT_UI_MOUSE", "").lower()
    keys = table.get("keys")
    notify: dict[str, Notify] = {"bell": "bell", "desktop": "desktop", "off": "off"}
    seconds = table.get("long_turn_seconds")
    return Looks(
        theme=str(table["theme"] or ""),
        mouse=mouse not in ("false", "no", "off", "0") if mouse else table.get("mouse") is not False,
        notify=notify.get(str(table["notify"]), "bell"),
        long_turn_seconds=float(seconds) if isinstance(seconds, int | float) else 20.0,
        keys={str(name): str(key) for name, key in keys.items()} if isinstance(keys, dict) else {},
    )


def options_for(request: FrontRequest, looks: Looks) -> "UiOptions":
    from agent.app.setup.first_run import FirstRun
    from agent.ui.options import Opening, UiOptions

    workspace = request.workspace
    opening = Opening(profile=request.profile, mode=request.mode, resume=request.resume, fork=request.fork)
    return UiOptions(
        workspace=workspace,
        open_session=partial(_open_session, workspace),
        opening=opening,
        prompt=request.prompt,
        state_folder=_ui_folder(workspace),
        setup=FirstRun(workspace),
        theme=looks.theme,
        keys=looks.keys,
        notify=looks.notify,
        long_turn_seconds=looks.long_turn_seconds,
        services={
            "files": partial(_files, workspace),
            "export": partial(_export, workspace),
            "permissions": partial(_permissions, workspace),
            "profiles": partial(_profiles, workspace),
            "resumable": partial(_resumable, workspace),
        },
        save_setting=_save_setting,
        loaded=_everything_is_loaded,
        at_rest=_at_rest,
    )


def settings_for(workspace: Path, opening: "Opening") -> "LoadedSettings":
    """The settings of a session that is about to be opened; one that goes on keeps its profile.

    Raises:
        UsageError: unknown keys, values or profile.
    """
    from agent.config.load import find_project_root, load_settings

    profile = opening.profile
    if opening.resume and not profile:
        from agent.app.chat.record import profile_of

        profile = profile_of(workspace, opening.resume)
    flags = {"profile": profile or None, "permissions.mode": opening.mode}
    return load_settings(find_project_root(workspace), os.environ, flags)


async def _open_session(workspace: Path, opening: "Opening") -> "SessionHandle":
    # In a thread, because the person may already be typing.
    interactive = await asyncio.to_thread(import_module, "agent.app.chat.interactive")
    loaded = await asyncio.to_thread(settings_for, workspace, opening)
    session = await interactive.open_session(
        workspace, loaded=loaded, resume=opening.resume or None, fork=opening.fork
    )
    await session.command("take_questions", {})  # both fronts of ours show them
    return session


def _everything_is_loaded() -> None:
    """Prepares in a thread what a first reply needs; then the garbage collector is set for a long session."""
    from agent.ui.conversation.highlight import prepare

    prepared = asyncio.get_running_loop().run_in_executor(None, prepare)
    prepared.add_done_callback(lambda _: _collect_in_small_bites())


def _collect_in_small_bites() -> None:
    """What was imported stays and is never looked at again.

    Of the rest only what is young is looked at while the person types or the model streams: a look at
    everything takes a tenth of a second or more in a long session, and was the longest wait between a key and
    its echo. That look is left to `_at_rest`.
    """
    gc.enable()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, _YOUNG_COLLECTIONS, _NEVER_BY_ITSELF)


def _at_rest() -> None:
    gc.collect()


def _ui_folder(workspace: Path) -> Path | None:
    digest = hashlib.sha256(str(workspace).encode("utf-8", "surrogateescape")).hexdigest()[:12]
    try:
        return state_folder() / "ui" / f"{workspace.name or 'root'}-{digest}"
    except AgentError:
        return None


async def _files(workspace: Path, arguments: Mapping[str, Any]) -> list[str]:
    from agent.repo.files import list_files

    return await asyncio.to_thread(list_files, workspace, int(arguments.get("limit", MOST_FILES)))


async def _resumable(workspace: Path, arguments: Mapping[str, Any]) -> str:
    """The id of the session that `name` means, if it can be gone on with while `present` is open.

    Raises UsageError.
    """
    return await asyncio.to_thread(
        _find_resumable, workspace, str(arguments["name"]), str(arguments.get("present") or "")
    )


def _find_resumable(workspace: Path, name: str, present: str) -> str:
    from agent.app.chat.record import chosen_session
    from agent.session.store import require_closed

    folder = chosen_session(workspace, name, allow_open=False)
    if folder.name == present:
        raise UsageError(f"session {present} is the one that is open")
    require_closed(folder)
    return folder.name


async def _profiles(workspace: Path, arguments: Mapping[str, Any]) -> "list[ProfileRow]":
    """All of them; with a `name` none, if there is one of that name. Raises UsageError: there is not."""
    return await asyncio.to_thread(_known_profiles, workspace, str(arguments.get("name") or ""))


def _known_profiles(workspace: Path, name: str) -> "list[ProfileRow]":
    from agent.app.services.profile_rows import profile_rows
    from agent.resources import places_of_profiles
    from agent.server.profile_files import load_profile
    from agent.ui.options import Opening

    if name:
        load_profile(name, places_of_profiles())
        return []
    try:
        folder = settings_for(workspace, Opening()).settings.models.folder
    except UsageError:  # it names a profile that is not there, which is why another is chosen
        folder = data_folder() / "models"
    return profile_rows(folder)


async def _permissions(workspace: Path, _arguments: Mapping[str, Any]) -> str:
    from agent.ui.options import Opening

    loaded = await asyncio.to_thread(settings_for, workspace, Opening())
    permissions = loaded.settings.permissions
    lines = [
        f"{verdict:<6}{rule}"
        for verdict, rules in (
            ("deny", permissions.deny),
            ("ask", permissions.ask),
            ("allow", permissions.allow),
        )
        for rule in rules
    ]
    return "\n".join(lines or ["no rules; `agent config set permissions.allow 'shell(pytest *)'` adds one"])


async def _export(workspace: Path, arguments: Mapping[str, Any]) -> str:
    """Writes the session as `agent session export` does: the ending of the name chooses the form.

    Raises UsageError.
    """
    name, session = str(arguments.get("path") or ""), str(arguments.get("session") or "")
    if not session:
        raise UsageError("there is no session to export yet")
    path = (workspace / Path(name or f"session-{session}.md").expanduser()).absolute()
    return await asyncio.to_thread(_write_export, workspace, session, path)


def _write_export(workspace: Path, session: str, path: Path) -> str:
    from agent.config.files import write_atomically
    from agent.session.catalogue import find_session
    from agent.session.export import exported, form_for
    from agent.session.lines import read_lines
    from agent.session.store import EVENTS_NAME, secrets_in

    if path.exists():
        raise UsageError(f"{path} exists; name another file")
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent}", "name a file in a folder that is there")
    records = read_lines(find_session(state_folder(), workspace, session) / EVENTS_NAME)
    write_atomically(path, "".join(exported(records, form_for(path), secrets_in(os.environ))))
    return f"Written to {path}."


def _save_setting(key: str, value: object) -> None:
    from agent.config.edit import set_user_value

    set_user_value(key, str(value), os.environ)
