"""The servers of a benchmark, made of profiles, of their plain twins, and of addresses."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agent.app.background import in_background
from agent.app.servers.carded import completed_profile
from agent.app.servers.fitting import as_written
from agent.app.servers.foreign import template_arguments
from agent.app.servers.serving import Serving, choose
from agent.bench.baseline import key_of
from agent.bench.measure import MeasureOptions
from agent.bench.result import ServerReport
from agent.config.load import LoadedSettings, find_project_root, load_settings
from agent.core.errors import AgentError, UsageError
from agent.core.events import ServerState
from agent.server.fingerprint import fingerprint
from agent.server.profile import Profile, Speculation
from agent.server.record import Endpoint

if TYPE_CHECKING:
    from agent.app.measure.benching import BenchRequest

_SECRET_MARKS = ("key", "token", "secret", "password")
_HIDDEN = "(hidden)"
_NOT_SHOWN = {
    "name", "description", "target", "draft", "api_key_file", "api_key_env", "tools", "model_card",
    "log_file", "slot_save_path",
}  # fmt: skip
"""What has no part in the speed, could lead to a key, or says where files of the person lie."""


@dataclass(slots=True)
class ServedContestant:
    """A server that takes part, see `agent.bench.runner.Contestant`."""

    serving: Serving
    report: ServerReport
    options: MeasureOptions
    progress: Callable[[ServerState], None] = lambda event: None
    endpoint: Endpoint | None = field(default=None)

    async def open(self) -> Endpoint:
        """The server, ready. Raises AgentError."""
        self.endpoint = await self.serving.endpoint(self.progress)
        self.report.baseline_key = self.serving.measured_as or key_of(self.endpoint)
        offered = await in_background(lambda: _described(self.endpoint))
        self.report.facts |= offered
        if self.options.model == "local" and offered.get("served model"):
            self.options = replace(self.options, model=offered["served model"])
        told = template_arguments(self.endpoint, completed_profile(self.serving, self.endpoint))
        self.options = replace(self.options, template_arguments=told)
        return self.endpoint

    async def close(self) -> None:
        """Stops the server if this program started it."""
        if self.endpoint is not None:
            await self.serving.release(self.endpoint)
        self.endpoint = None

    def why_it_ended(self, endpoint: Endpoint) -> AgentError | None:
        return self.serving.why_it_ended(endpoint)


def contestants(
    request: "BenchRequest",
    progress: Callable[[ServerState], None] = lambda event: None,
    serve: Callable[[LoadedSettings], Serving] = choose,
) -> list[ServedContestant]:
    """The servers in the order in which they are compared; the first is the baseline of the others.

    Raises:
        UsageError: an unknown profile, the same one twice, or a plain twin that cannot be.
    """
    chosen = _servings(request, serve)
    names = [serving.profile.name for serving, _ in chosen]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"{twice[0]} is named twice", "name each profile or address once")
    found = []
    for serving, baseline in chosen:
        report = ServerReport(
            name=serving.profile.name,
            baseline=baseline or (names[0] if serving.profile.name != names[0] else ""),
            speculation=_speculation(serving.profile),
            facts=_facts(serving),
        )
        found.append(ServedContestant(serving, report, _options(request, serving.profile), progress))
    if request.against_plain:
        plain = {one.report.baseline for one in found}
        for one in found:
            one.report.baseline = "" if one.report.name in plain else one.report.baseline
    return found


def without_speculation(profile: Profile) -> Profile:
    """The same profile with nothing that drafts, under a name of its own."""
    return profile.model_copy(
        update={"name": f"{profile.name}-plain", "speculation": Speculation(), "draft": None}
    )


def _servings(
    request: "BenchRequest", serve: Callable[[LoadedSettings], Serving]
) -> list[tuple[Serving, str]]:
    """Each server with the name of its own baseline, if it has one."""
    chosen: list[tuple[Serving, str]] = []
    names: Sequence[str | None] = request.profiles or (() if request.urls else (None,))
    for name in names:
        # An address in the settings would send every profile to the same server.
        flags = {"profile": name, "server.url": ""} if name else {}
        serving = serve(_settings(request, flags))
        serving = serving if request.fits_batch else as_written(serving)
        twin = _twin(serving, chosen) if request.against_plain else None
        if twin is not None and all(one is not twin for one, _ in chosen):
            chosen.append((twin, ""))
        chosen.append((serving, twin.profile.name if twin else ""))
    for url in request.urls:
        address = url if "://" in url else f"http://{url}"
        flags = {"server.url": address, "server.api_key_env": request.api_key_env or None}
        serving = serve(_settings(request, flags))
        name = urlsplit(address).netloc or address
        chosen.append((replace(serving, profile=serving.profile.model_copy(update={"name": name})), ""))
    return chosen


def _settings(request: "BenchRequest", flags: Mapping[str, object]) -> LoadedSettings:
    settings = {"server.threads": request.threads, "server.reuse": False, **flags}
    return load_settings(find_project_root(Path.cwd()), os.environ, settings)


def _twin(serving: Serving, chosen: Sequence[tuple[Serving, str]]) -> Serving:
    profile = serving.profile
    if not serving.is_managed:
        raise UsageError(
            f"{profile.name} runs elsewhere, so it cannot be started without speculation",
            "start a second server without it, and name both addresses with --url",
        )
    if not profile.speculation.kinds:
        raise UsageError(f"{profile.name} has no speculation", "leave out --against-plain")
    plain = without_speculation(profile)
    server, models = serving.loaded.settings.server, serving.loaded.settings.models.folder
    own = fingerprint(plain, models, server.threads, server.binary)
    mark = own
    if serving.measured_as:
        mark = fingerprint(plain, models, server.threads, server.binary, as_written=True)
    # Profiles that only draft differently share their twin.
    return next(
        (one for one, _ in chosen if one.fingerprint == mark),
        replace(serving, profile=plain, fingerprint=mark, measured_as=own if mark != own else ""),
    )


def _options(request: "BenchRequest", profile: Profile) -> MeasureOptions:
    sampling = profile.sampling.model_dump(exclude_none=True, exclude={"temperature"})
    return MeasureOptions(
        max_tokens=request.max_tokens,
        temperature=0.0 if request.greedy else request.temperature,
        stream=request.stream,
        model=request.model or profile.model or "local",
        sampling={} if request.greedy else sampling,
        extra=request.extra,
        timeout_seconds=request.timeout_seconds,
    )


def _speculation(profile: Profile) -> str:
    """In a few words; a server that runs elsewhere may do more than its profile says."""
    kinds = " + ".join(profile.speculation.kinds)
    return kinds or ("none" if profile.engine in ("embedded", "llama-server") else "not known")


def _facts(serving: Serving) -> dict[str, Any]:
    """The profile as it is used, without what could hold a key or says where files lie."""
    profile = serving.profile
    table = profile.model_dump(mode="json", exclude_defaults=True, exclude=_NOT_SHOWN)
    if profile.extra_args:
        table["extra_args"] = _without_secrets(profile.extra_args)
    files = {"target": profile.target, "draft": profile.draft if profile.uses_draft_model else None}
    models = {name: Path(file.file).name for name, file in files.items() if file}
    return {
        "speculation": _speculation(profile),
        **models,
        "threads": serving.loaded.settings.server.threads or profile.threads or "automatic",
        "profile": table,
    }


def _without_secrets(words: Sequence[str]) -> list[str]:
    shown: list[str] = []
    hide = False
    for word in words:
        name, equals, _ = word.partition("=")
        secret = any(mark in name.lower() for mark in _SECRET_MARKS) and word.startswith("-")
        shown.append(_HIDDEN if hide else f"{name}={_HIDDEN}" if secret and equals else word)
        hide = secret and not equals
    return shown


def _described(endpoint: Endpoint | None) -> dict[str, Any]:
    """What the server says it is: build and context of a llama-server, the model of any other."""
    import httpx

    if endpoint is None:
        return {}
    headers = {"Authorization": f"Bearer {endpoint.api_key}"} if endpoint.api_key else {}
    plain = endpoint.base_url.startswith("http://")
    with httpx.Client(
        base_url=endpoint.base_url, headers=headers, timeout=10.0, trust_env=not plain, verify=not plain
    ) as client:
        props, models = _json(client, "/props"), _json(client, "/v1/models")
    settings = props.get("default_generation_settings")
    context = settings.get("n_ctx") if isinstance(settings, dict) else None
    listed = models.get("data")
    first = listed[0] if isinstance(listed, list) and listed and isinstance(listed[0], dict) else {}
    found = {
        "build": props.get("build_info"),
        "context": context,
        "served model": None if props else first.get("id"),
    }
    return {name: value for name, value in found.items() if isinstance(value, str | int)}


def _json(client: Any, path: str) -> dict[str, Any]:
    import httpx

    try:
        answer = client.get(path)
        table = answer.json() if answer.status_code == 200 else {}
    except (httpx.HTTPError, OSError, ValueError):
        return {}
    return table if isinstance(table, dict) else {}
