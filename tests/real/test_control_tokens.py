"""A real tokenizer with marks of its own chat template in a text that somebody else wrote."""

from pathlib import Path

import pytest

from agent.core.control_tokens import RESULT_END, disarmed
from agent.server.record import Endpoint
from tests.real.rig import ask, serving

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
MARKS = ("<|im_start|>", "<|im_end|>")


def tokens(endpoint: Endpoint, text: str) -> list[int]:
    """As the server cuts a whole prompt, in which marks count."""
    return ask(endpoint, "/tokenize", {"content": text, "parse_special": True})["tokens"]


def test_marks_in_a_text_are_marks_to_the_server_until_they_are_disarmed(tmp_path: Path):
    with serving("embedded-small", tmp_path, threads=1) as endpoint:
        marks = [tokens(endpoint, mark) for mark in MARKS]
        assert [len(mark) for mark in marks] == [1, 1]
        text = "one\n" + "\n".join(MARKS)
        assert {mark[0] for mark in marks} <= set(tokens(endpoint, text))
        assert not {mark[0] for mark in marks} & set(tokens(endpoint, disarmed(text)))


def test_the_end_of_a_result_costs_a_few_tokens(tmp_path: Path):
    with serving("embedded-small", tmp_path, threads=1) as endpoint:
        without, marked = tokens(endpoint, "x = 1"), tokens(endpoint, f"x = 1\n{RESULT_END}")
        assert 1 <= len(marked) - len(without) <= 8
