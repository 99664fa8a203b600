"""What is left of a stranger's schema, offered among others: the real server has to take the request."""

from pathlib import Path
from typing import Any

import pytest

from agent.mcp.schema import projected
from agent.server.loopback import request_json
from tests.mcp.wild_schema import WILD
from tests.real.llama_server import serving
from tests.real.rig import ROOT
from tests.real.tiny_pair import write_target

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


# As gpt-oss and others look at a list; they fail on one that does not say what is in it.
TEMPLATE = ROOT / "tests/cases/templates/asks-for-items.jinja"


def offered(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": name, "description": "Is there.", "parameters": schema},
    }


def test_the_real_server_takes_twenty_tools_of_which_one_had_a_wild_schema(tmp_path: Path):
    model = write_target(tmp_path / "tiny.gguf")
    plain = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    others = [offered(f"one__plain{number}", projected(plain)) for number in range(19)]
    body: dict[str, Any] = {
        "messages": [{"role": "user", "content": "Go"}],
        "max_tokens": 4,
        "temperature": 0,
    }
    words = ["-m", str(model), "--jinja", "-c", "4096", "-np", "1"]
    with serving([*words, "--chat-template-file", str(TEMPLATE)], tmp_path) as server:

        def status(wild: dict[str, Any], choice: str) -> int:
            asked = {**body, "tools": [*others, offered("one__wild", wild)], "tool_choice": choice}
            return request_json(server.port, "POST", "/v1/chat/completions", "", asked, 60.0)[0]

        assert [status(projected(WILD), choice) for choice in ("auto", "required")] == [200, 200]
        assert status(WILD, "required") >= 400  # or the projection would be for nothing
