import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.app.doctor.live import Live
from agent.app.servers.serving import Serving, choose
from agent.config.load import load_settings
from agent.server.profile import Speculation
from agent.server.record import Endpoint


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Live]:
    """A look at a server with an `url`; other named arguments are those of `Live`."""
    for kind in ("CONFIG", "STATE", "DATA", "CACHE"):
        monkeypatch.setenv(f"AGENT_{kind}_HOME", str(tmp_path / kind.lower()))

    def make(server: Any, *, speculation: str = "none", managed: bool = False, **changes: Any) -> Live:
        serving = choose(load_settings(None, os.environ, {"server.url": server.url}))
        drafting = Speculation.model_validate({"kind": speculation})
        engine = "embedded" if managed else "remote"
        profile = serving.profile.model_copy(update={"speculation": drafting, "engine": engine})
        endpoint = Endpoint(base_url=server.url, api_key="", profile="box", context_tokens=8192)
        chosen: Serving = replace(serving, profile=profile)
        return Live(**{"serving": chosen, "endpoint": endpoint, "protocol": "native", **changes})

    return make
