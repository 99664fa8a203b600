"""No draft is longer than a batch: the server would end in the middle of a reply."""

from typing import Any

import pytest

from agent.server.draft_room import with_room_for_drafts


@pytest.mark.parametrize(
    ("batch", "speculation", "raised"),
    [
        (32, {"kind": "ngram-mod", "n_max": 31}, 32),
        (32, {"kind": "ngram-mod", "n_max": 32}, 33),
        (32, {"kind": "ngram-mod"}, 65),
        (8, {"kind": ["draft", "ngram-mod"], "n_max": 4, "ngram_n_max": 24}, 25),
        (8, {"kind": ["draft", "ngram-mod"], "n_max": 4}, 65),
        (8, {"kind": "dflash", "n_max": 15}, 16),
        (32, {"kind": "none", "n_max": 64}, 32),
        (32, {}, 32),
        ("many", {"kind": "ngram-mod", "n_max": 64}, "many"),
    ],
)
def test_a_batch_holds_the_longest_draft_and_the_token_before_it(
    batch: Any, speculation: dict[str, Any], raised: Any
):
    assert with_room_for_drafts({"batch": batch, "speculation": speculation})["batch"] == raised


def test_a_batch_that_was_left_to_the_default_stays_so():
    table = {"speculation": {"kind": "ngram-mod", "n_max": 64}}
    assert with_room_for_drafts(table) == table
