"""What is left of a stranger's schema, offered to the real server: it has to take the request."""

from pathlib import Path
from typing import Any

import pytest

from agent.mcp.schema import projected
from agent.server.loopback import request_json
from agent.server.tiny_model import write_tiny_model
from tests.mcp.test_schema import WILD
from tests.real.llama_server import serving

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_the_real_server_takes_a_projected_schema(tmp_path: Path, choice: str):
    write_tiny_model(tmp_path / "tiny.gguf")
    function = {"name": "one__wild", "description": "Is wild.", "parameters": projected(WILD)}
    body: dict[str, Any] = {
        "messages": [{"role": "user", "content": "Go"}],
        "tools": [{"type": "function", "function": function}],
        "tool_choice": choice,
        "max_tokens": 4,
        "temperature": 0,
    }
    with serving(
        ["-m", str(tmp_path / "tiny.gguf"), "--jinja", "-c", "4096", "-np", "1"], tmp_path
    ) as server:
        status, _ = request_json(server.port, "POST", "/v1/chat/completions", "", body, 60.0)
    assert status == 200
