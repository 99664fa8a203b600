"""How many tokens are still worth drafting where drafts as long as they are do not pay."""

from math import ceil

from agent.core.stats import StepStats


def shorter_draft(length: int, seen: StepStats) -> int:
    """As many tokens as were accepted of a draft in the mean, at most half of what is drafted now.

    Args:
        length: the most tokens that are drafted at once, as far as is known. A drafter with smaller blocks
            than that drafts less, which shows in what was seen.
        seen: figures of the replies since drafts have this length.

    Returns:
        At least 1, or 0 where drafts cannot be shorter than they are.
    """
    passes = seen.draft_rounds or seen.decoded_tokens - seen.accepted
    useful = length
    if seen.drafted and passes > 0:
        # Passes without a draft count too where nobody counts rounds, so less than 2 tells nothing.
        length = min(length, max(2, ceil(seen.drafted / passes)))
        useful = ceil(seen.accepted / passes)
    shorter = max(1, min(useful, length // 2))
    return shorter if shorter < length else 0
