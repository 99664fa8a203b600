"""The length of a first request by the tokenizer and the chat template of real models."""

from collections.abc import Iterator

import pytest

from agent.server.record import Endpoint
from tests.llm.first_request import MOST_TOKENS, PROTOCOLS, first_request
from tests.real.rig import ask, serving

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


@pytest.fixture(scope="module", params=["embedded-small", "embedded"])
def endpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    with serving(request.param, tmp_path_factory.mktemp("size"), context=2048) as endpoint:
        yield endpoint


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_first_request_without_its_task_is_short(endpoint: Endpoint, protocol: str):
    body = first_request(protocol)
    answer = ask(endpoint, "/v1/chat/completions/input_tokens", body)
    assert 100 < answer["input_tokens"] <= MOST_TOKENS


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_count_is_that_of_the_prompt_that_the_template_makes(endpoint: Endpoint, protocol: str):
    """So that a server which counts without the tools cannot make the first request look short."""
    body = first_request(protocol)
    counted = ask(endpoint, "/v1/chat/completions/input_tokens", body)["input_tokens"]
    prompt = ask(endpoint, "/apply-template", body)["prompt"]
    tokens = ask(endpoint, "/tokenize", {"content": prompt, "add_special": True})["tokens"]
    assert abs(counted - len(tokens)) <= 1
