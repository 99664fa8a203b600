"""What a sub-agent leaves of a conversation in a real server's cache, and what its tool costs of a prompt."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.delegated_conversation import delegate_once
from tests.llm.first_request import MOST_TOKENS, PROTOCOLS, first_request
from tests.real.rig import ask, serving

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

LEAST_KEPT = 0.95
PAGES = 8


@pytest.mark.parametrize(
    "changes",
    [{}, {"slots": 2, "unified_kv": True, "context": 2048, "cache_ram_mib": 0}],
    ids=["one slot", "two slots"],
)
def test_conversation_is_still_in_the_cache_after_a_sub_agent(tmp_path: Path, changes: Mapping[str, Any]):
    with serving("embedded-small", tmp_path, **changes) as endpoint:
        done = asyncio.run(
            delegate_once(endpoint.base_url, endpoint.api_key, endpoint.context_tokens, pages=PAGES)
        )
    assert done.subagent_steps > 0
    assert done.prompt > 500
    assert done.share_kept >= LEAST_KEPT


def test_first_request_with_the_tool_is_short_too(tmp_path: Path):
    with serving("embedded-small", tmp_path, context=2048) as endpoint:
        for protocol in PROTOCOLS:
            body = first_request(protocol, subagents=True)
            answer = ask(endpoint, "/v1/chat/completions/input_tokens", body)
            assert 100 < answer["input_tokens"] <= MOST_TOKENS
