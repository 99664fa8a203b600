"""What strict chat templates refuse about the order of messages is learnt, and the request sent again."""

import json
from typing import Any

import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment

from agent.core.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage
from agent.llm.failures import Failure
from agent.llm.turns import TurnHabits
from benchmarks.shapes import request_shapes
from tests.conftest import StartServer
from tests.llm.conftest import Connect
from tests.llm.rig import retries

ALTERNATE = (
    "After the optional system message, conversation roles must alternate user/assistant/user/assistant/..."
)
ONE_CALL = "This model only supports single tool-calls at once!"
SHORT_IDS = "Tool call IDs should be alphanumeric strings with length 9!"
NO_MARKS = "You have passed a message containing <|channel|> tags in the content field. Instead of doing this"

# Templates of our own, each as strict as one of a kind that models come with.
TAKES_TURNS = """
{%- set ns = namespace(asked=true) -%}
{%- for message in messages -%}
  {%- if message.role == 'system' -%}
    {%- if not loop.first -%}{{ raise_exception('the system message comes first') }}{%- endif -%}
  {%- elif message.role == 'user' or (message.role == 'assistant' and not message.tool_calls) -%}
    {%- if (message.role == 'user') != ns.asked -%}{{ raise_exception(alternate) }}{%- endif -%}
    {%- set ns.asked = not ns.asked -%}
  {%- endif -%}
  {{ message.role }}: {{ message.content }}
{%- endfor -%}
"""
ONE_CALL_AT_A_TIME = """
{%- for message in messages -%}
  {%- if message.tool_calls and message.tool_calls | length != 1 -%}
    {{ raise_exception(one_call) }}
  {%- endif -%}
  {{ message.role }}: {{ message.content }}
{%- endfor -%}
"""
RESULTS_FOLLOW_CALLS = """
{%- set ns = namespace(open=[]) -%}
{%- for message in messages -%}
  {%- if message.role == 'tool' -%}
    {%- if message.tool_call_id not in ns.open -%}{{ raise_exception('a stray result') }}{%- endif -%}
    {%- set ns.open = ns.open | reject('equalto', message.tool_call_id) | list -%}
  {%- elif ns.open -%}{{ raise_exception('a call without a result') }}
  {%- endif -%}
  {%- for call in message.tool_calls or [] -%}
    {%- if call.function.arguments is not mapping -%}{{ raise_exception('arguments are text') }}{%- endif -%}
    {%- set ns.open = ns.open + [call.id] -%}
  {%- endfor -%}
  {%- if message.content is none -%}{{ raise_exception('no content') }}{%- endif -%}
  {{ message.role }}: {{ message.content }}
{%- endfor -%}
"""
WANTS_SHORT_IDS = """
{%- for message in messages -%}
  {%- for call in message.tool_calls or [] -%}
    {%- if call.id | length != 9 or not call.id.isalnum() -%}{{ raise_exception(short_ids) }}{%- endif -%}
  {%- endfor -%}
  {%- if message.role == 'tool' and message.tool_call_id | length != 9 -%}
    {{ raise_exception(short_ids) }}
  {%- endif -%}
  {{ message.role }}: {{ message.content }}
{%- endfor -%}
"""
TAKES_NO_MARKS = """
{%- for message in messages -%}
  {%- set said = message.content ~ message.reasoning_content -%}
  {%- if message.role == 'assistant' and '<|channel|>final<|message|>' in said -%}
    {{ raise_exception(no_marks) }}
  {%- endif -%}
  {{ message.role }}: {{ message.content }}
{%- endfor -%}
"""
TEMPLATES = {
    "turns": TAKES_TURNS,
    "one call": ONE_CALL_AT_A_TIME,
    "results": RESULTS_FOLLOW_CALLS,
    "ids": WANTS_SHORT_IDS + RESULTS_FOLLOW_CALLS,
    "marks": TAKES_NO_MARKS,
}


def refuse(words: str) -> None:
    raise ValueError(words)


def rendered(template: str, messages: list[Any]) -> str:
    """The prompt. Arguments are objects, as servers hand them to templates that want them so."""
    shown = json.loads(json.dumps(messages))
    for message in shown:
        for called in message.get("tool_calls") or []:
            called["function"]["arguments"] = json.loads(called["function"]["arguments"])
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    known = {
        "raise_exception": refuse,
        "alternate": ALTERNATE,
        "one_call": ONE_CALL,
        "short_ids": SHORT_IDS,
        "no_marks": NO_MARKS,
    }
    return environment.from_string(template).render(messages=shown, **known)


def refusal(template: str, messages: list[Any]) -> str:
    """What the template says against the messages; empty if nothing."""
    try:
        return "" if rendered(template, messages) else "it renders nothing"
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
def test_every_shape_renders_under_a_strict_template(template: str):
    for name, shape in request_shapes().items():
        habits = TurnHabits()
        while said := refusal(template, habits.arranged(shape["messages"])):
            assert habits.learn(Failure("unacceptable", said, False, said)), f"{name}: {said}"


def test_some_shapes_have_to_be_learnt():
    """The templates above can fail, or the test before this one would hold nothing."""
    shapes = request_shapes()
    with pytest.raises(ValueError, match="must alternate"):
        rendered(TAKES_TURNS, shapes["native: what a person said during a call"]["messages"])
    with pytest.raises(ValueError, match="single tool-calls"):
        rendered(ONE_CALL_AT_A_TIME, shapes["native: several calls in a reply"]["messages"])
    with pytest.raises(ValueError, match="length 9"):
        rendered(WANTS_SHORT_IDS, shapes["native: the result of a call"]["messages"])
    with pytest.raises(ValueError, match="tags in the content field"):
        rendered(TAKES_NO_MARKS, shapes["native: marks of a template in thoughts and words"]["messages"])


def history() -> list[Message]:
    calls = tuple(ToolCall(f"c{number}", "read", {"path": "a"}, '{"path": "a"}') for number in (1, 2))
    results = [ToolMessage(call.id, "read", f"x{call.id}") for call in calls]
    return [
        SystemMessage("Be brief."),
        UserMessage("Look."),
        AssistantMessage("I look.", "", calls),
        *results,
        UserMessage("Be quick."),
    ]


@pytest.mark.parametrize(
    ("said", "roles"),
    [
        (ALTERNATE, ["system", "user", "assistant", "tool", "tool", "assistant", "user"]),
        (ONE_CALL, ["system", "user", "assistant", "tool", "assistant", "tool", "user"]),
        (SHORT_IDS, ["system", "user", "assistant", "tool", "tool", "user"]),
        (NO_MARKS, ["system", "user", "assistant", "tool", "tool", "user"]),
    ],
)
async def test_refusal_of_a_template_is_learnt_from_and_the_request_sent_again(
    scripted_server: StartServer, connect: Connect, said: str, roles: list[str]
):
    server = scripted_server({"fault": "http_500", "message": said}, "Fine.", "And fine.")
    client = connect(server)
    items = await client.items(history())
    assert retries(items) == []
    assert [message["role"] for message in server.chats[1].body["messages"]] == roles
    last = [*history(), AssistantMessage("Fine."), UserMessage("Thanks.")]
    await client.ask(last)
    now, before = (server.chats[place].body["messages"] for place in (2, 1))
    assert now[: len(before)] == before
    if said == ONE_CALL:
        assert [message["tool_calls"][0]["id"] for message in before if message.get("tool_calls")] == [
            "c1",
            "c2",
        ]
        assert [message["content"] for message in before if message["role"] == "assistant"] == ["I look.", ""]


def test_order_is_left_alone_until_something_is_refused():
    habits = TurnHabits()
    wire = request_shapes()["native: what a person said during a call"]["messages"]
    assert habits.arranged(wire) == wire
    assert habits.learn(Failure("unacceptable", "no", False, "invalid type")) == ""
    assert habits.learn(Failure("unacceptable", "no", False, ALTERNATE))
    assert habits.learn(Failure("unacceptable", "no", False, ALTERNATE)) == ""
