"""A home, a folder to work in, and a model server that follows a script."""

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartServer
from tests.fakes.scripted_server import ScriptedServer


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty workspace; beside it the person's own folders."""
    for kind in ("config", "state", "data"):
        monkeypatch.setenv(f"AGENT_{kind.upper()}_HOME", str(tmp_path / kind))
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def use(scripted_server: StartServer, monkeypatch: pytest.MonkeyPatch) -> StartServer:
    """Starts a server that sessions of this process use."""

    def start(*steps: Any, **settings: Any) -> ScriptedServer:
        server = scripted_server(*steps, **settings)
        monkeypatch.setenv("AGENT_SERVER_URL", server.url)
        return server

    return start
