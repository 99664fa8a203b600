"""The first message of a task: what the model needs to know before it does anything.

Everything volatile goes here and not into the system message, which stays the same for the prompt cache.
Files come before the request and the files that are to be changed come last, because small models copy what
stands last.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agent.core.outside_text import fenced, shown_name
from agent.core.verifier import Verdict

LISTED_FILES = 60


@dataclass(frozen=True, slots=True)
class AttachedFile:
    """A text file that is shown in full. `reference` marks tests and documents, which come first."""

    path: str
    text: str
    reference: bool = False


def first_message(
    request: str, *, files: Sequence[AttachedFile], listing: Sequence[str], baseline: Verdict | None
) -> str:
    """Words the first user message.

    `listing` are the paths of the repository's files, `baseline` is how the check ends before any change.
    """
    listed = listing_line(listing)
    parts: list[str] = [listed] if listed else []
    parts.extend(_attached(file) for file in files if file.reference)
    if baseline is not None:
        parts.append(_check_text(baseline))
    parts.extend(_attached(file) for file in files if not file.reference)
    parts.append(f"Task: {request}" if parts else request)
    return "\n\n".join(parts)


def listing_line(listing: Sequence[str]) -> str:
    """What a first message begins with, whatever the task; empty where there are too many files to tell."""
    if not 0 < len(listing) <= LISTED_FILES:
        return ""
    return f"Files of the repository: {', '.join(map(shown_name, listing))}"


def _attached(file: AttachedFile) -> str:
    return f"{shown_name(file.path)}:\n{fenced(file.text)}"


def _check_text(baseline: Verdict) -> str:
    if baseline.passed:
        return f"After your changes the check `{baseline.event.command}` has to pass, as it does now."
    return f"{baseline.feedback}\nIt has to pass after your changes."
