"""Going back and summing up are each one quiet row."""

import pytest

from agent.core.events import CompactionFinished, CompactionStarted, Event, Rewound
from tests.ui.conversation.rig import screen_rows, shown

ROWS: list[tuple[Event, str]] = [
    (
        Rewound(to_turn=2, what="both", restored=("a.py",), deleted=("b.py",), left=("c.py: changed since",)),
        "↶ conversation and files went back to before turn 2; put back: a.py;",
    ),
    (CompactionStarted(before=5000), "· the model sums up 5.0k tokens"),
    (CompactionFinished(before=5000, after=700), "· summed up: 5.0k tokens became about 700"),
    (
        CompactionFinished(before=5000, after=5000, detail="interrupted"),
        "· nothing was summed up: interrupted",
    ),
]


@pytest.mark.parametrize(("event", "row"), ROWS)
async def test_a_change_of_the_conversation_has_a_row(event: Event, row: str):
    async with shown([event]) as (view, _):
        assert next(one.strip() for one in screen_rows(view) if one.strip()).startswith(row)
