"""From a profile and the settings to a server that answers, and what becomes of it after the run."""

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from agent.app.background import in_background
from agent.app.servers.carded import card_in_force
from agent.config.load import LoadedSettings
from agent.core.errors import AgentError, ServerError, UsageError
from agent.core.events import ServerState
from agent.resources import (
    cache_folder,
    places_of_profiles,
    runtime_folder,
    servers_folder,
)
from agent.server.fingerprint import fingerprint
from agent.server.probe import Offer, offer_of, stays_busy
from agent.server.profile import KINDS_WITH_A_MODEL, Profile, Speculation, web_address
from agent.server.profile_files import load_profile
from agent.server.record import Endpoint, Record, find_running, read_record, record_file
from agent.server.remote import StillLoadingError, describe, load_model

if TYPE_CHECKING:
    from agent.server.caps import Capabilities

Progress = Callable[[ServerState], None]
ProtocolName = Literal["native", "constrained"]
LOADING_PATIENCE_SECONDS = 600.0
"""How long a server that somebody else runs may load its model, unless `server.start_seconds` says so."""

LOADED_ON_DEMAND = ("ollama", "lm-studio")
"""Engines that load a model when it is asked for, and say only then how much context it has."""
_ASK_AGAIN_SECONDS = 0.25
_ENDING_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Serving:
    """A chosen profile, and how to reach or start its server.

    `command` replaces the embedded engine's program. `degraded` says that the profile's draft is left out.
    `draft_limit` is how many tokens are drafted at once where that is less than the profile says, 0 = as it
    says; `measured_as` is the fingerprint under which its speed is kept, where that is another one. With
    `keeps_draft` nothing is changed about the draft any more.
    """

    profile: Profile
    loaded: LoadedSettings
    fingerprint: str
    command: tuple[str, ...] = ()
    degraded: bool = False
    draft_limit: int = 0
    measured_as: str = ""
    keeps_draft: bool = False

    @property
    def is_managed(self) -> bool:
        """Whether the server is started and stopped here; one with an address of its own is not."""
        profile = self.profile
        if profile.engine == "llama-server":
            return profile.url in (None, web_address(profile.host, profile.port))
        return profile.engine == "embedded"

    def without_draft(self) -> "Serving | None":
        """The same model served without a draft model; None where there is none to leave out."""
        asked = self.profile.speculation
        if asked.kind not in KINDS_WITH_A_MODEL:
            return None
        if asked.also:
            kept = asked.model_dump(include={"n_match", "size_n", "size_m", "min_hits"})
            plain = Speculation(kind=asked.also[0], also=asked.also[1:], **kept)
        else:
            plain = Speculation()
        profile = self.profile.model_copy(update={"speculation": plain})
        mark = _mark(profile, self.loaded)
        return replace(self, profile=profile, fingerprint=mark, degraded=True, draft_limit=0)

    def with_drafts_of(self, tokens: int) -> "Serving":
        """The same model with the same draft model, which proposes at most so many tokens at once."""
        asked = self.profile.speculation
        least = None if asked.n_min is None else min(asked.n_min, tokens)
        speculation = asked.model_copy(update={"n_max": tokens, "n_min": least})
        profile = self.profile.model_copy(update={"speculation": speculation})
        return replace(
            self,
            profile=profile,
            fingerprint=_mark(profile, self.loaded),
            draft_limit=tokens,
            measured_as=self.measured_as or self.fingerprint,
        )

    def running(self) -> Endpoint | None:
        """The server, if it already runs. Takes milliseconds and starts nothing."""
        return find_running(self.fingerprint, runtime_folder()) if self.is_managed else None

    async def endpoint(self, progress: Progress) -> Endpoint:
        """The server, started if need be. Raises ServerError, ModelFileError or UsageError."""
        if not self.is_managed:
            return await self._remote(progress)
        endpoint = await in_background(self.running)
        if endpoint is not None:
            self.tell_findings(endpoint, progress)
            progress(ServerState(state="ready", detail="reusing the running server"))
            return endpoint
        from agent.app.servers.planning import launch_plan  # not needed by who finds one running
        from agent.server.process import ensure_running

        def report(state: str, seconds: float, detail: str) -> None:
            progress(ServerState(state=state, detail=detail, elapsed_seconds=round(seconds, 1)))

        return await ensure_running(await launch_plan(self, progress), report)

    def tell_findings(self, endpoint: Endpoint, progress: Progress) -> None:
        """Tells what is not as the profile says, which else only who started the server would know."""
        record = self.record_of(endpoint)
        for one in record.findings if record is not None else ():
            if one.get("level") != "info":
                text, hint = one.get("message", ""), one.get("hint", "")
                progress(ServerState(state="warning", detail=f"{text} ({hint})" if hint else text))

    async def tool_protocol(self, endpoint: Endpoint) -> ProtocolName:
        """How the model is asked for tool calls: as profile or card say, or as its chat template allows."""
        wanted = self.profile.tools.protocol
        if wanted != "auto":
            return wanted
        card = card_in_force(self, endpoint)
        if card is not None and card.values.get("tools", {}).get("protocol") == "constrained":
            return "constrained"
        able = endpoint.tool_calls
        record = self.record_of(endpoint) if able is None else None
        if record is not None:
            offer = await in_background(lambda: offer_of(record))
            able = offer.tool_calls if offer else None
        return "constrained" if able is False else "native"

    def why_it_ended(self, endpoint: Endpoint) -> AgentError | None:
        """Why a server of ours is no longer there; None while it runs, and for one of somebody else."""
        record = self.record_of(endpoint)
        if record is None:
            return None
        from agent.server.process import explain_end

        return explain_end(record)

    async def release(self, endpoint: Endpoint) -> str:
        """Stops the server if this process started it and it is not to be kept for the next run.

        Returns:
            One line if it could not be stopped, or had to be left to somebody else.
        """
        record = self.record_of(endpoint)
        if self.loaded.settings.server.reuse or record is None or not _is_child(record.pid):
            return ""
        from agent.server.process import stop_server

        # Our own last request may still be ending.
        if await in_background(lambda: stays_busy(record, _ENDING_SECONDS)):
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
        key = self.api_key()
        offer = await self._offer(base, key, progress)
        if not offer.context_tokens and offer.model and offer.engine in LOADED_ON_DEMAND:
            progress(ServerState(state="loading", detail=f"{base} loads {offer.model}"))
            patience = self._loading_seconds
            await in_background(lambda: load_model(base, key, offer.engine, offer.model, patience))
            offer = await self._offer(base, key, progress)
        return Endpoint(
            base_url=base,
            api_key=key,
            profile=self.profile.name,
            context_tokens=offer.context_tokens or self._context_told(),
            slots=offer.slots,
            tool_calls=offer.tool_calls,
            engine=offer.engine,
            model=offer.model or "local",
            names=offer.names,
        )

    def _context_told(self) -> int:
        """What settings or profile say of a server that says nothing; 0 where they are about another one."""
        if self.loaded.settings.server.context:
            return self.loaded.settings.server.context
        own = not self.loaded.settings.server.url and "context" in self.profile.model_fields_set
        return self.profile.context if own else 0

    async def _offer(self, base: str, key: str, progress: Progress) -> Offer:
        """What the server offers, once it has loaded its model."""
        begin = time.monotonic()
        limit = self._loading_seconds
        model = self.loaded.settings.server.model or self.profile.model or ""
        while True:
            try:
                return await in_background(lambda: describe(base, key, model))
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

    @property
    def _loading_seconds(self) -> float:
        return self.loaded.settings.server.start_seconds or LOADING_PATIENCE_SECONDS

    def api_key(self) -> str:
        """The key of a server elsewhere, empty without one. Raises UsageError."""
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

    def capabilities(self) -> "Capabilities | None":
        """Of the llama-server that is to be started; None for the embedded engine."""
        if self.profile.engine != "llama-server":
            return None
        from agent.server.binaries import find_binary
        from agent.server.caps import read_capabilities

        binary = find_binary(self.profile, servers_folder(), os.environ, self.loaded.settings.server.binary)
        return read_capabilities(binary, cache_folder())

    def record_of(self, endpoint: Endpoint) -> Record | None:
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
        profile = load_profile(settings.profile, places_of_profiles())
        if settings.server.url:
            profile = profile.model_copy(update={"engine": "remote", "url": settings.server.url})
    return Serving(profile, loaded, _mark(profile, loaded))


def _mark(profile: Profile, loaded: LoadedSettings) -> str:
    server = loaded.settings.server
    return fingerprint(profile, loaded.settings.models.folder, server.threads, server.binary)


def _is_child(pid: int) -> bool:
    """Whether this very process started the process `pid`."""
    import psutil

    try:
        return psutil.Process(pid).ppid() == os.getpid()
    except psutil.Error:
        return False
