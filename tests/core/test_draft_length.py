"""How long drafts should be where they do not pay as they are."""

import pytest

from agent.core.draft_length import shorter_draft
from agent.core.stats import StepStats


def seen(drafted: int, accepted: int, decoded: int, rounds: int = 0) -> StepStats:
    return StepStats(drafted=drafted, accepted=accepted, decoded_tokens=decoded, draft_rounds=rounds)


@pytest.mark.parametrize(
    ("length", "figures", "shorter"),
    [
        (15, seen(1500, 150, 250), 2),  # 1.5 of 15 accepted in each of 100 passes
        (15, seen(1500, 1400, 1500), 7),  # nearly all accepted: still half, or nothing would change
        (15, seen(700, 650, 750), 3),  # the drafter's blocks are of 8, whatever was asked for
        (3, seen(300, 0, 100), 1),  # nothing accepted
        (6, seen(0, 0, 100), 3),  # nobody says what was drafted
        (15, seen(600, 160, 1000, rounds=40), 4),  # rounds that are counted tell more than passes
        (2, seen(200, 150, 250), 1),
    ],
)
def test_draft_gets_as_long_as_what_is_accepted_and_at_most_half_of_what_it_is(
    length: int, figures: StepStats, shorter: int
):
    assert shorter_draft(length, figures) == shorter


@pytest.mark.parametrize("figures", [seen(100, 0, 100), seen(0, 0, 0), seen(100, 100, 100)])
def test_draft_of_one_token_cannot_be_shorter(figures: StepStats):
    assert shorter_draft(1, figures) == 0
