"""Which sessions have the map of the sources, and that a model finds its file with it."""

from pathlib import Path
from typing import Any

import pytest

from agent.app.servers.serving import Serving
from agent.app.turns.outlined import offers_outline
from agent.config.load import LoadedSettings
from agent.server.profile import Profile
from tests.app.talk import messages_of, talking
from tests.conftest import StartServer
from tests.fakes.script import call

OWN = {"name": "mine", "engine": "llama-server", "target": {"file": "tiny.gguf"}}
REMOTE = {"name": "box", "engine": "remote", "url": "http://127.0.0.1:1"}


@pytest.mark.parametrize(
    ("profile", "is_offered"),
    [
        ({**OWN, "context": 16_384}, True),
        ({**OWN, "context": 8_192}, False),
        ({**OWN, "context": 8_192, "model_card": {"outline": True}}, True),
        ({**OWN, "context": 32_768, "model_card": {"outline": False}}, False),
        ({**OWN, "context": 32_768, "model_card": {"guided": True}}, False),
        ({**REMOTE, "context": 32_768}, True),
        (REMOTE, False),
    ],
)
def test_map_is_offered_by_the_card_else_by_the_size_of_the_context(
    profile: dict[str, Any], is_offered: bool
):
    assert offers_outline(Profile.model_validate(profile)) is is_offered


async def test_model_is_offered_the_map_and_finds_the_file_in_it(scripted_server: StartServer, work: Path):
    for number in range(12):
        (work / f"part{number}.py").write_text(f"def part_{number}(): ...\n", "utf-8")
    (work / "wire.py").write_text("def parse_header(text): ...\n", "utf-8")
    server = scripted_server(call("outline", about="where are headers parsed?"), "In wire.py.")

    def serve(loaded: LoadedSettings) -> Serving:
        told = {**REMOTE, "url": server.url, "context": 32_768, "tools": {"protocol": "native"}}
        return Serving(Profile.model_validate(told), loaded, "none")

    async with talking(work, server, serve=serve) as talk:
        await talk.turn("Find it")
    assert messages_of(server)[-1][-1]["content"].startswith("wire.py\n  1: def parse_header(text)")
