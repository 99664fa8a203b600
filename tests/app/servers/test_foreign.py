"""What a server that was not started here is told with each request."""

from pathlib import Path
from typing import Any

import pytest

from agent.app.servers.foreign import connection_to
from agent.server.engines import EngineName
from agent.server.profile import Profile
from agent.server.record import Endpoint
from tests.app.talk import talking
from tests.conftest import StartEngine


def told(engine: EngineName, fingerprint: str | None = None, **profile: Any) -> dict[str, Any]:
    endpoint = Endpoint(
        base_url="http://127.0.0.1:1", api_key="", profile="box", context_tokens=8192, engine=engine,
        fingerprint=fingerprint,
    )  # fmt: skip
    own = Profile.model_validate({"name": "box", "engine": "remote", "url": endpoint.base_url, **profile})
    return dict(connection_to(endpoint, own).template_arguments)


KEEP = {"preserve_reasoning": True}
KEPT = {"preserve_thinking": True, "clear_thinking": False}
EFFORT = {"reasoning_effort": "low"}


@pytest.mark.parametrize("engine", ["llama-server", "vllm", "sglang"])
@pytest.mark.parametrize(
    ("profile", "arguments"),
    [
        ({}, {}),
        ({"reasoning": "off"}, {"enable_thinking": False}),
        ({"reasoning": "auto"}, {}),
        ({"reasoning": "on", **KEEP}, {**KEPT, "enable_thinking": True}),
        ({"reasoning": "off", "template_arguments": EFFORT}, EFFORT),
        ({**KEEP, "template_arguments": {"a": 0}}, {**KEPT, "a": 0}),
    ],
)  # fmt: skip
def test_template_hears_what_the_profile_says(
    engine: EngineName, profile: dict[str, Any], arguments: dict[str, Any]
):
    assert told(engine, **profile) == arguments


@pytest.mark.parametrize("engine", ["lm-studio", "ollama", "unknown"])
def test_server_that_does_not_tell_its_templates_anything_is_not_asked_to(engine: EngineName):
    assert told(engine, reasoning="off", template_arguments={"a": 1}) == {}


def test_server_that_was_started_here_knows_it_already():
    assert told("llama-server", fingerprint="x", reasoning="off", template_arguments={"a": 1}) == {}


@pytest.mark.usefixtures("homes")
async def test_person_is_told_to_say_how_large_the_window_is_where_the_server_does_not(
    work: Path, other_engine: StartEngine
):
    server = other_engine("bare", "Hello.", context=0)
    async with talking(work, server) as talk:
        finished = await talk.turn("Hello?")
    [told] = [event.text for event in talk.of("notice") if event.level == "error"]
    assert finished.reason == "server_failed"
    assert told.startswith(f"the server at {server.url} does not say how much context the model gets")
    assert "AGENT_SERVER_CONTEXT=32768" in told
    assert server.bodies == []
