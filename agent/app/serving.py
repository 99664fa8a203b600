"""From a profile and the settings to a server that answers."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent.config.load import LoadedSettings
from agent.core.errors import ServerError
from agent.core.events import ServerState
from agent.resources import config_folder, profiles_folder, runtime_folder, state_folder
from agent.server.fingerprint import fingerprint
from agent.server.launch import LaunchPlan
from agent.server.profile import ModelFile, Profile
from agent.server.profile_files import load_profile
from agent.server.record import Endpoint, find_running
from agent.server.remote import describe

Progress = Callable[[ServerState], None]


@dataclass(frozen=True, slots=True)
class Serving:
    """A chosen profile, and how to reach or start its server."""

    profile: Profile
    loaded: LoadedSettings
    fingerprint: str

    @property
    def is_managed(self) -> bool:
        return self.profile.engine == "embedded"

    def running(self) -> Endpoint | None:
        """The server, if it already runs. Takes milliseconds and starts nothing."""
        return find_running(self.fingerprint, runtime_folder()) if self.is_managed else None

    async def endpoint(self, progress: Progress) -> Endpoint:
        """The server, started if need be. Raises ServerError or ModelFileError."""
        if not self.is_managed:
            return await self._remote()
        from agent.server.process import ensure_running

        def report(state: str, seconds: float, detail: str) -> None:
            progress(ServerState(state=state, detail=detail, elapsed_seconds=round(seconds, 1)))

        return await ensure_running(self._plan(), report)

    async def _remote(self) -> Endpoint:
        import asyncio

        url = self.loaded.settings.server.url or self.profile.url or ""
        key_name = self.loaded.settings.server.api_key_env or self.profile.api_key_env or ""
        key = os.environ.get(key_name, "") if key_name else ""
        if key_name and not key:
            raise ServerError(f"the variable {key_name}, which holds the server's key, is not set")
        base = url.rstrip("/").removesuffix("/v1")
        offer = await asyncio.to_thread(describe, base, key)
        return Endpoint(
            base_url=base,
            api_key=key,
            profile=self.profile.name,
            context_tokens=offer.context_tokens,
            slots=offer.slots,
        )

    def _located(self, file: ModelFile) -> Path:
        """The verified file. Nothing is downloaded without being asked for."""
        from agent.server.download import locate

        return locate(file, self.loaded.settings.models.folder)

    def _plan(self) -> LaunchPlan:
        settings = self.loaded.settings
        paths = [self._located(file) for file in self.profile.model_files]
        return LaunchPlan(
            profile=self.profile,
            fingerprint=self.fingerprint,
            model_path=paths[0],
            draft_path=paths[1] if len(paths) > 1 else None,
            threads=settings.server.threads,
            runtime_folder=runtime_folder(),
            log_folder=state_folder() / "logs",
            start_seconds=settings.server.start_seconds,
        )


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
