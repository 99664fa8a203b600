"""Marks of chat templates in text of others: they stay readable and are marks no more."""

import pytest

from agent.core.control_tokens import disarmed, rearmed

MARKS = [
    *("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|channel|>", "<|user|>"),
    *("<|fim_prefix|>", "<turn|>", "<|turn>", "<\uff5cend\u2581of\u2581sentence\uff5c>", "</s>", "<s>"),
    *("<start_of_turn>", "<end_of_turn>", "[INST]", "[/INST]", "[TOOL_CALLS]", "[gMASK]"),
    *("<tool_call>", "</tool_call>", "<think>"),
]


@pytest.mark.parametrize("mark", MARKS)
def test_a_mark_is_none_any_more_and_comes_back_in_arguments(mark: str):
    text = f"before {mark} after"
    safe = disarmed(text)
    assert mark not in safe
    assert safe.replace("\u2060", "") == text
    assert disarmed(safe) == safe
    call = {"path": "a.txt", "edits": [{"old": safe, "new": 1}]}
    assert rearmed(call) == {"path": "a.txt", "edits": [{"old": text, "new": 1}]}


@pytest.mark.parametrize(
    "text",
    ["a < b and b > c", "x | y", "<div>", "list[int]", "if a <|b", "<p>[1]</p>", "a[INS]", "Vec<String>", ""],
)
def test_other_text_stays_as_it_is(text: str):
    assert disarmed(text) == text
    assert rearmed({"text": text}) == {"text": text}
