"""Servers with a real model for the tests of this folder. Files that are not there are fetched."""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.app.servers.serving import Serving, choose
from agent.config.load import load_settings
from agent.resources import data_folder, runtime_folder
from agent.server.download import obtain
from agent.server.fingerprint import fingerprint
from agent.server.launch import LaunchPlan
from agent.server.loopback import request_json
from agent.server.process import ensure_running, stop_server
from agent.server.profile import Profile
from agent.server.profile_files import load_profile
from agent.server.record import Endpoint, list_records
from tests.real import llama_server

ROOT = Path(__file__).parents[2]
_PATIENCE_SECONDS = 60.0
_POLL_SECONDS = 0.05


@contextlib.contextmanager
def serving(profile_name: str, folder: Path, threads: int = 1, **changes: Any) -> Iterator[Endpoint]:
    """A server of a shipped profile with some values changed, whose files of its own are in `folder`."""
    shipped = load_profile(profile_name, [ROOT / "server_profiles"])
    profile = Profile.model_validate({**shipped.model_dump(exclude_unset=True), **changes})
    models = os.environ.get("AGENT_MODELS_FOLDER")
    plan = LaunchPlan(
        profile=profile,
        fingerprint=fingerprint(profile, folder),
        model_path=obtain(profile.model_files[0], Path(models) if models else data_folder() / "models"),
        threads=threads,
        runtime_folder=folder / "run",
        log_folder=folder / "logs",
    )
    try:
        yield asyncio.run(ensure_running(plan))
    finally:
        for record in list_records(plan.runtime_folder):
            asyncio.run(stop_server(record, plan.runtime_folder))


@contextlib.asynccontextmanager
async def choosing(
    name: str, text: str, engine: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **flags: Any
) -> AsyncIterator[Serving]:
    """A profile of somebody's own for one of both engines: on one thread, with homes in `folder`.

    What was started of it is stopped at the end.
    """
    models = Path(os.environ.get("AGENT_MODELS_FOLDER") or data_folder() / "models")
    monkeypatch.setenv("AGENT_STATE_HOME", str(folder / "state"))
    monkeypatch.setenv("AGENT_CONFIG_HOME", str(folder / "config"))
    profiles = folder / "config" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / f"{name}.toml").write_text(text.format(engine=engine), "utf-8")
    flags |= {"profile": name, "server.threads": 1, "models.folder": str(models)}
    if engine == "llama-server":
        flags["server.binary"] = str(llama_server.real_binary())
    for file in load_profile(name, [profiles, ROOT / "server_profiles"]).model_files:
        obtain(file, models)
    try:
        yield choose(load_settings(None, os.environ, flags))
    finally:
        for record in list_records(runtime_folder()):
            with contextlib.suppress(OSError):
                await stop_server(record, runtime_folder())


def until(is_met: Callable[[], object]) -> None:
    """Waits for what a server does in a moment, such as to free a slot behind its answer."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not is_met():
        assert time.monotonic() < deadline
        time.sleep(_POLL_SECONDS)


def ask(endpoint: Endpoint, path: str, body: Any) -> Any:
    """The decoded answer to a POST; anything but a 200 is a mistake of the test."""
    port = int(endpoint.base_url.rpartition(":")[2])
    status, answer = request_json(port, "POST", path, endpoint.api_key, body, timeout=120)
    assert status == 200, answer
    return answer
