"""Which slot a sub-agent gets; fields of `GET /slots` as llama.cpp b11434 gives them."""

from typing import Any

from agent.llm.slots import slot_beside


def slot(number: int, tokens: int | None = None, task: int = 0, busy: bool = False) -> dict[str, Any]:
    """A slot that was never used unless it has tokens."""
    idle = {"id": number, "n_ctx": 4096, "speculative": False, "is_processing": busy}
    if tokens is None:
        return idle
    return idle | {"id_task": task, "n_prompt_tokens": tokens, "next_token": [{"n_decoded": 0}]}


def test_unused_slot_is_taken_first():
    assert slot_beside([slot(0, 900, task=7), slot(1, 50, task=3), slot(2)], 900) == 2


def test_slot_of_the_conversation_is_never_taken():
    assert slot_beside([slot(0, 30, task=9), slot(1, 900, task=2)], 905) == 0


def test_of_two_conversations_alike_the_one_used_last_is_ours():
    assert slot_beside([slot(0, 900, task=2), slot(1, 900, task=9)], 900) == 0


def test_slot_that_works_for_somebody_else_is_left_alone():
    slots = [slot(0, 900, task=7), slot(1, 50, task=3, busy=True), slot(2, 70, task=5)]
    assert slot_beside(slots, 900) == 2


def test_reply_counts_as_held_too():
    slots = [slot(0, 400, task=4), slot(1, 800, task=2) | {"next_token": {"n_decoded": 100}}]
    assert slot_beside(slots, 900) == 0


def test_single_slot_leaves_it_to_the_server():
    assert slot_beside([slot(0, 900)], 900) is None


def test_no_free_slot_leaves_it_to_the_server():
    assert slot_beside([slot(0, 900, task=1), slot(1, 10, task=2, busy=True)], 900) is None


def test_odd_answers_leave_it_to_the_server():
    for said in (None, {}, "no", [1, 2], [{"id": "x"}, {"id": None}]):
        assert slot_beside(said, 900) is None
