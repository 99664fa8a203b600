"""Servers with a real model for the tests of this folder. Files that are not there are fetched."""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from agent.resources import data_folder
from agent.server.download import obtain
from agent.server.fingerprint import fingerprint
from agent.server.launch import LaunchPlan
from agent.server.loopback import request_json
from agent.server.process import ensure_running, stop_server
from agent.server.profile import Profile
from agent.server.profile_files import load_profile
from agent.server.record import Endpoint, list_records

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
