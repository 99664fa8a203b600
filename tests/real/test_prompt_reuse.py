"""How much of a growing conversation a real server has to evaluate again."""

import asyncio
from collections.abc import Iterator

import pytest

from agent.llm.protocol import ConstrainedProtocol
from agent.server.record import Endpoint
from benchmarks.real_conversation import converse, reuse_in
from tests.real.rig import serving
from tools import built_in_tools

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

REQUESTS = 8


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    with serving("embedded-small", tmp_path_factory.mktemp("reuse")) as endpoint:
        yield endpoint


def test_hardly_anything_is_evaluated_twice_in_a_long_session(endpoint: Endpoint):
    protocol = ConstrainedProtocol(built_in_tools())
    steps = asyncio.run(converse(endpoint.base_url, endpoint.api_key, protocol, REQUESTS))
    reuse = reuse_in(steps)
    # A reply that cannot be used is left out, and may be one now and then; the figures count that.
    assert sum(step.kept for step in steps) > REQUESTS / 2
    assert reuse.requests == REQUESTS
    assert reuse.evaluated < reuse.prompt / 2
    assert reuse.share_again <= 0.02
