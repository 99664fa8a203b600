"""Prompts as data."""

import json
from pathlib import Path

import pytest

from agent.bench.suites import SUITES, load_prompt_file, load_suite, selected
from agent.core.errors import UsageError
from agent.core.guide import Offer
from agent.llm.protocol import NativeProtocol
from tools import built_in_tools


@pytest.mark.parametrize("name", SUITES)
def test_each_suite_has_three_prompts_with_a_title(name: str):
    prompts = load_suite(name)
    assert len(prompts) == 3
    assert all(prompt.title and prompt.messages for prompt in prompts)


def test_coding_prompts_are_one_message_of_at_most_1200_tokens_at_0_7():
    for prompt in load_suite("coding"):
        assert (len(prompt.messages), prompt.max_tokens, prompt.temperature) == (1, 1200, 0.7)


def test_recorded_turns_end_where_the_model_has_to_speak_and_ask_for_a_call():
    for prompt in load_suite("agent"):
        assert prompt.messages[-1]["role"] in ("tool", "user")
        assert prompt.request == {"tool_choice": "required"}


def test_recorded_calls_and_schemas_are_those_of_our_own_tools():
    fields = NativeProtocol(built_in_tools()).request_fields(Offer())
    ours = {tool["function"]["name"]: tool["function"]["parameters"] for tool in fields["tools"]}
    prompt = load_suite("agent")[0]
    assert {tool["function"]["name"]: tool["function"]["parameters"] for tool in prompt.tools} == {
        tool["function"]["name"]: ours[tool["function"]["name"]] for tool in prompt.tools
    }
    calls = [
        call["function"] for one in load_suite("agent")[1].messages for call in one.get("tool_calls", ())
    ]
    assert {call["name"] for call in calls} == {"read", "edit", "shell"}
    for call in calls:
        assert set(json.loads(call["arguments"])) <= set(ours[call["name"]]["properties"])


def test_unknown_suite_is_told_with_those_there_are():
    with pytest.raises(UsageError, match="no suite 'speed'"):
        load_suite("speed")


def test_text_file_is_one_prompt(tmp_path: Path):
    path = tmp_path / "story.md"
    path.write_text("# Tell me\na story\n", "utf-8")
    (prompt,) = load_prompt_file(path)
    assert (prompt.id, prompt.messages[0]["content"]) == ("story", "# Tell me\na story")


def test_file_of_prompts_has_defaults_that_each_prompt_may_change(tmp_path: Path):
    path = tmp_path / "mine.toml"
    path.write_text(
        '[defaults]\nmax_tokens = 5\n[[prompt]]\ntext = "a"\n'
        '[[prompt]]\nid = "b"\ntext = "b"\nmax_tokens = 6\n',
        "utf-8",
    )
    assert [(one.id, one.max_tokens) for one in load_prompt_file(path)] == [("prompt-1", 5), ("b", 6)]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.toml", "x = ", "cannot be read"),
        ("a.json", "[1, 2]", "not a table of prompts"),
        ("a.json", "{}", "has no prompts"),
        ("a.json", '{"prompts": [1]}', "prompt 1 is no table"),
        ("a.json", '{"prompts": [{"txt": "a"}]}', "unknown key 'txt'"),
        ("a.json", '{"prompts": [{"id": "a"}]}', "neither text nor messages"),
        ("a.json", '{"prompts": [{"text": " "}]}', "text is empty"),
        ("a.json", '{"prompts": [{"text": "a", "max_tokens": 0}]}', "max_tokens"),
        ("a.json", '{"prompts": [{"text": "a", "id": "x"}, {"text": "b", "id": "x"}]}', "the id 'x'"),
        ("a.json", '{"prompts": [{"text": "a", "tools": "read"}]}', "tools"),
        ("a.json", '{"prompts": [{"text": "a", "request": 3}]}', "request"),
        ("a.txt", "  \n", "is empty"),
        ("a.txt", b"\xff\xfe", "not UTF-8"),
        ("a.txt", None, "cannot read"),
    ],
)
def test_mistake_in_a_file_is_told_in_one_line(
    name: str, content: str | bytes | None, words: str, tmp_path: Path
):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    with pytest.raises(UsageError) as caught:
        load_prompt_file(path)
    assert words in caught.value.message
    assert "\n" not in caught.value.message


def test_prompts_are_chosen_by_category_or_id_and_limited_for_each_category():
    prompts = load_suite("quality") + load_suite("coding")
    assert [one.id for one in selected(prompts, categories=["writing", "linked-list"])] == [
        "experts-article",
        "linked-list",
    ]
    assert len(selected(prompts, limit=1)) == 4
    with pytest.raises(UsageError, match="no category or prompt 'poems'"):
        selected(prompts, categories=["poems"])
