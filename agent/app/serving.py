"""From a profile and the settings to a server that answers, and what becomes of it after the run."""

import asyncio
import os
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent.app.background import in_background
from agent.config.load import LoadedSettings
from agent.core.errors import AgentError, ModelFileError, ServerError, UsageError
from agent.core.events import ServerState
from agent.resources import config_folder, profiles_folder, runtime_folder, state_folder
from agent.server.fingerprint import fingerprint
from agent.server.launch import EMBEDDED_COMMAND, LaunchPlan
from agent.server.probe import Offer, is_busy, offer_of
from agent.server.profile import ModelFile, Profile
from agent.server.profile_files import load_profile
from agent.server.record import Endpoint, Record, find_running, read_record, record_file
from agent.server.remote import StillLoadingError, describe

Progress = Callable[[ServerState], None]
ProtocolName = Literal["native", "constrained"]
LOADING_PATIENCE_SECONDS = 600.0
"""How long a server that somebody else runs may load its model, unless `server.start_seconds` says so."""

_ASK_AGAIN_SECONDS = 0.25
_BUSY_LOOKS = 8


@dataclass(frozen=True, slots=True)
class Serving:
    """A chosen profile, and how to reach or start its server. `command` is the engine's program."""

    profile: Profile
    loaded: LoadedSettings
    fingerprint: str
    command: tuple[str, ...] = EMBEDDED_COMMAND

    @property
    def is_managed(self) -> bool:
        return self.profile.engine == "embedded"

    def running(self) -> Endpoint | None:
        """The server, if it already runs. Takes milliseconds and starts nothing."""
        return find_running(self.fingerprint, runtime_folder()) if self.is_managed else None

    async def endpoint(self, progress: Progress) -> Endpoint:
        """The server, started if need be. Raises ServerError, ModelFileError or UsageError."""
        if not self.is_managed:
            return await self._remote(progress)
        from agent.server.process import ensure_running

        def report(state: str, seconds: float, detail: str) -> None:
            progress(ServerState(state=state, detail=detail, elapsed_seconds=round(seconds, 1)))

        return await ensure_running(await self._plan(progress), report)

    async def tool_protocol(self, endpoint: Endpoint) -> ProtocolName:
        """How the model is asked for tool calls: as the profile says, or as its chat template allows."""
        wanted = self.profile.tools.protocol
        if wanted != "auto":
            return wanted
        able = endpoint.tool_calls
        record = self._record(endpoint) if able is None else None
        if record is not None:
            offer = await in_background(lambda: offer_of(record.port, record.api_key))
            able = offer.tool_calls if offer else None
        return "constrained" if able is False else "native"

    def why_it_ended(self, endpoint: Endpoint) -> AgentError | None:
        """Why a server of ours is no longer there; None while it runs, and for one of somebody else."""
        record = self._record(endpoint)
        if record is None:
            return None
        from agent.server.process import explain_end

        return explain_end(record)

    async def release(self, endpoint: Endpoint) -> str:
        """Stops the server if this process started it and it is not to be kept for the next run.

        Returns:
            One line if it could not be stopped, or had to be left to somebody else.
        """
        record = self._record(endpoint)
        if self.loaded.settings.server.reuse or record is None or not _is_child(record.pid):
            return ""
        from agent.server.process import stop_server

        if await _stays_busy(record):
            return "the server is left running, because another program uses it"
        try:
            await stop_server(record, runtime_folder())
        except ServerError as error:
            return error.message
        return ""

    def key_variables(self) -> tuple[str, ...]:
        """Names of environment variables that hold keys of servers."""
        names = (self.loaded.settings.server.api_key_env, self.profile.api_key_env)
        return tuple(name for name in names if name)

    async def _remote(self, progress: Progress) -> Endpoint:
        url = self.loaded.settings.server.url or self.profile.url or ""
        base = url.rstrip("/").removesuffix("/v1")
        key = self._key()
        offer = await self._offer(base, key, progress)
        return Endpoint(
            base_url=base,
            api_key=key,
            profile=self.profile.name,
            context_tokens=offer.context_tokens,
            slots=offer.slots,
            tool_calls=offer.tool_calls,
        )

    async def _offer(self, base: str, key: str, progress: Progress) -> Offer:
        """What the server offers, once it has loaded its model."""
        begin = time.monotonic()
        limit = self.loaded.settings.server.start_seconds or LOADING_PATIENCE_SECONDS
        while True:
            try:
                return await in_background(lambda: describe(base, key))
            except StillLoadingError as loading:
                waited = time.monotonic() - begin
                if waited > limit:
                    raise ServerError(
                        f"the server at {base} was still loading its model after {limit:g} s",
                        "look into its log, or allow more time with server.start_seconds",
                    ) from loading
                detail = f"{base} is loading its model"
                progress(ServerState(state="loading", detail=detail, elapsed_seconds=waited))
            await asyncio.sleep(_ASK_AGAIN_SECONDS)

    def _key(self) -> str:
        name = self.loaded.settings.server.api_key_env or self.profile.api_key_env or ""
        if not name:
            return ""
        key = os.environ.get(name, "").strip()
        if not key:
            raise UsageError(
                f"the variable {name}, which holds the server's key, is not set",
                f"set it, or correct api_key_env in the profile or the settings (now {name})",
            )
        if not (key.isascii() and key.isprintable()):
            raise UsageError(f"the key in the variable {name} has characters that cannot be sent")
        return key

    async def _plan(self, progress: Progress) -> LaunchPlan:
        settings = self.loaded.settings
        begin = time.monotonic()
        loop = asyncio.get_running_loop()

        def report(done: int, total: int, label: str) -> None:
            share = f" {100 * done // total} %" if total else ""
            state = ServerState(
                state="checking", detail=f"{label}{share}", elapsed_seconds=time.monotonic() - begin
            )
            loop.call_soon_threadsafe(progress, state)

        paths = [
            await in_background(lambda file=file: self._located(file, report))
            for file in self.profile.model_files
        ]
        return LaunchPlan(
            profile=self.profile,
            fingerprint=self.fingerprint,
            model_path=paths[0],
            draft_path=paths[1] if len(paths) > 1 else None,
            threads=settings.server.threads,
            runtime_folder=runtime_folder(),
            log_folder=state_folder() / "logs",
            start_seconds=settings.server.start_seconds,
            command=self.command,
        )

    def _located(self, file: ModelFile, progress: Callable[[int, int, str], None]) -> Path:
        """The verified file. Nothing is downloaded without being asked for."""
        from agent.server.download import locate

        try:
            return locate(file, self.loaded.settings.models.folder, progress)
        except ModelFileError as error:
            raise ModelFileError(error.message, self._with_profile(error.hint)) from error

    def _with_profile(self, hint: str) -> str:
        """Commands in a hint, completed so that they can be typed as they are."""
        name = shlex.quote(self.loaded.settings.profile)
        for command in ("agent model pull", "agent model rm"):
            hint = hint.replace(f"`{command}`", f"`{command} {name}`")
        return hint

    def _record(self, endpoint: Endpoint) -> Record | None:
        """The record of a server of ours, None for any other and for one that was stopped."""
        if endpoint.fingerprint is None:
            return None
        record = read_record(record_file(runtime_folder(), endpoint.fingerprint))
        return record if record is not None and record.pid == endpoint.pid else None


def choose(loaded: LoadedSettings) -> Serving:
    """The profile that the settings name. Raises UsageError for an unknown one.

    A server address without a named profile means: whatever runs there, with neutral defaults.
    """
    settings = loaded.settings
    named = loaded.origins["profile"].layer != "default"
    if settings.server.url and not named:
        profile = Profile(name="remote", engine="remote", url=settings.server.url)
    else:
        profile = load_profile(settings.profile, [config_folder() / "profiles", profiles_folder()])
        if settings.server.url:
            profile = profile.model_copy(update={"engine": "remote", "url": settings.server.url})
    mark = fingerprint(profile, settings.models.folder, settings.server.threads)
    return Serving(profile, loaded, mark)


def _is_child(pid: int) -> bool:
    """Whether this very process started the process `pid`."""
    import psutil

    try:
        return psutil.Process(pid).ppid() == os.getpid()
    except psutil.Error:
        return False


async def _stays_busy(record: Record) -> bool:
    """Whether the server works for somebody else; our own last request may still be ending."""
    for _ in range(_BUSY_LOOKS):
        if not await in_background(lambda: is_busy(record)):
            return False
        await asyncio.sleep(_ASK_AGAIN_SECONDS)
    return True
