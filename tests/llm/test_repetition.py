"""Telling circles from text that is merely long or regular."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.llm.repetition import goes_in_circles

PROSE = "\n".join(f"{n}. Line {n} says {'abc'[n % 3] * (n % 7)}." for n in range(300))
CODE = "\n".join(
    f"def test_case_{number}():\n    assert parse({number!r}) == Node({number})\n" for number in range(80)
)
TABLE = "\n".join(f'    ("key{number}", {number * 37 % 101}, "value {number}"),' for number in range(200))


@pytest.mark.parametrize("text", ["", "short", "a" * 2000, PROSE, CODE, TABLE])
def test_text_that_goes_on_is_no_circle(text: str):
    assert not goes_in_circles(text)


@pytest.mark.parametrize(
    "passage",
    [
        "a",
        "\n",
        "and so on ",
        "Let me read the file again to see what is in it.\n",
        "I will now call the tool.\n```json\n{}\n```\n" * 3,
        "".join(f"Line {number} of a long passage that comes back. " for number in range(16)),
    ],
)
def test_a_passage_that_comes_back_and_back_is_a_circle(passage: str):
    text = PROSE + passage * (3 + 3000 // len(passage))
    assert goes_in_circles(text)


def test_numbered_lines_that_say_the_same_are_a_circle():
    lines = [f"Step {number}: I read the file again to see what has changed since.\n" for number in range(60)]
    assert goes_in_circles("".join(lines))


def test_a_passage_that_comes_twice_is_no_circle():
    assert not goes_in_circles(CODE[:1100] + CODE[:1100] + CODE[:1100][:400])


@settings(deadline=None)
@given(st.text(min_size=1, max_size=700))
def test_any_passage_without_end_is_found(passage: str):
    assert goes_in_circles(passage * (3 + 2400 // len(passage)))
