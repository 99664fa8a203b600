"""What is no longer as the model was told it: the day, and the branch that the repository is on.

It goes along with a person's newest words, as everything that changes does: what was said stays as it is in
the server's cache.
"""

import re
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from agent.core.messages import Message, UserMessage
from agent.core.outside_text import shown_name
from agent.repo.branch import branch_of

_TOLD_DAY = re.compile(r"^Today is (\d{4}-\d\d-\d\d)\.$", re.M)
# Sessions of earlier versions were told the folder's name.
_TOLD_BRANCH = re.compile(
    r"^You are (?:in the (?:working folder|folder .*), |now )on the git branch (\S+?)\.(?:\s|$)", re.M
)


def another_branch(now: str, messages: Sequence[Message], known: str = "") -> list[str]:
    """Where the branch is not the one that was told last, a sentence about it.

    `known` is the branch that the model worked on without being told, empty = not known.
    """
    told, now = _told_last(_TOLD_BRANCH, messages) or shown_name(known), shown_name(now)
    return [f"You are now on the git branch {now}."] if told and now and told != now else []


def another_day(today: date, messages: Sequence[Message], known: str = "") -> list[str]:
    """The date, where it is not the one that was told last: conversations go on for days.

    `known` is the day, in ISO 8601, of what was done without a date, empty = there is nothing yet.
    """
    told, now = _told_last(_TOLD_DAY, messages) or known, today.isoformat()
    return [f"Today is {now}."] if told != now else []


def _told_last(pattern: re.Pattern[str], messages: Sequence[Message]) -> str:
    """What the pattern's group has found last in the words that went along with a person's, empty = never."""
    texts = [one.text for one in messages if isinstance(one, UserMessage)]
    return next((found[-1] for text in reversed(texts) if (found := pattern.findall(text))), "")


def since_the_run(
    workspace: Path, today: date, messages: Sequence[Message], *, branch: str, began: float
) -> str:
    """What a run that goes on has to tell the model; empty where day and branch are as they were.

    Waits for a git process, so call it in a thread.

    Args:
        branch: the one that was worked on, empty = not known.
        began: when the last turn began, in seconds since 1970; 0 = not known.
    """
    sentences = another_branch(branch_of(workspace), messages, branch)
    return "\n\n".join([*sentences, *another_day(today, messages, _day(began) or today.isoformat())])


def _day(began: float) -> str:
    try:
        return date.fromtimestamp(began).isoformat() if began > 0 else ""
    except (OverflowError, ValueError, OSError):  # a damaged file may hold any number
        return ""
