"""The batch that fits a machine, and the drafts that fit into it."""

from typing import Any

import pytest

from agent.server.batch_fit import LEAST_BATCH, fitted, told
from agent.server.profile import Profile

NGRAMS = {"kind": "ngram-mod", "n_match": 24, "n_min": 35, "n_max": 35}


def profile(**changes: Any) -> Profile:
    table = {"name": "p", "target": {"file": "t.gguf"}, "batch": 36, "ubatch": 36, "batch_seconds": 0.5}
    if {"draft", "dflash"} & set(changes.get("speculation", {}).get("kind", "")):
        table["draft"] = {"file": "d.gguf"}
    return Profile.model_validate({**table, **changes})


@pytest.mark.parametrize(
    ("rate", "batch"), [(None, 36), (1000.0, 36), (72.0, 36), (71.0, 35), (48.9, 24), (3.0, LEAST_BATCH)]
)
def test_a_batch_takes_as_long_as_it_may_and_is_no_larger_than_the_profile_says(
    rate: float | None, batch: int
):
    chosen = fitted(profile(), rate)
    assert (chosen.batch, chosen.ubatch) == (batch, batch)


def test_a_profile_that_does_not_ask_for_it_stays_as_it_is():
    asked = profile(batch_seconds=0)
    assert fitted(asked, 1.0) is asked
    assert told(asked, asked, 1.0) == ""


def test_a_batch_that_is_small_already_is_not_made_larger():
    assert fitted(profile(batch=8), 1.0).batch == 8


@pytest.mark.parametrize(
    ("speculation", "shorter"),
    [
        (NGRAMS, {"n_min": 19, "n_max": 19}),
        ({"kind": "ngram-mod", "n_max": 30, "n_min": 4}, {"n_max": 19, "n_min": 4}),
        ({"kind": "ngram-mod"}, {"n_max": 19, "n_min": 19}),
        ({"kind": "ngram-simple", "size_n": 12}, {"size_m": 19}),
        ({"kind": "ngram-map-k", "size_m": 8}, {"size_m": 8}),
        ({"kind": ["draft", "ngram-mod"], "n_max": 6}, {"n_max": 6, "ngram_n_max": 19, "ngram_n_min": 19}),
        ({"kind": "draft", "n_max": 30}, {"n_max": 19}),
    ],
)
def test_drafts_become_as_short_as_the_batch_needs(speculation: dict[str, Any], shorter: dict[str, int]):
    chosen = fitted(profile(batch=80, speculation=speculation, draft={"file": "d.gguf"}), 40.0)
    assert chosen.batch == 20
    assert {name: getattr(chosen.speculation, name) for name in shorter} == shorter


def test_a_kind_whose_drafts_have_no_length_to_be_said_keeps_its_room():
    chosen = fitted(profile(batch=80, speculation={"kind": "ngram-cache"}), 40.0)
    assert chosen.batch == 65


def test_one_line_says_what_was_chosen_and_why():
    asked = profile(speculation=NGRAMS)
    for rate, words in (
        (None, "reads up to 36 tokens at once: the first start measures how fast that is here"),
        (90.0, "reads 36 tokens at once: at 90 tok/s, as read here last, that takes 0.40 s"),
        (
            40.0,
            "reads 20 tokens at once and drafts 19 instead of 36: "
            "at 40 tok/s, as read here last, that takes 0.50 s",
        ),
    ):
        assert told(asked, fitted(asked, rate), rate) == words
