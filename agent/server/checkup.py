"""What a server that has just become healthy is asked before anybody relies on it.

A server can be healthy and yet useless: without a model of its own, without the drafting that it was started
for, with less context, or about to abort at its first request.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agent.core.errors import ServerError
from agent.server import probe
from agent.server.logs import read_tail
from agent.server.profile import KINDS_WITH_A_MODEL, Profile
from agent.server.record import Record
from agent.server.verdict import findings_after_start

_DRAFT_PROBE_TOKENS = 16
_WHOLE_LOG = 4 * 1024 * 1024

Finding = Mapping[str, str]
"""`level`, `code`, `message`, `hint`."""


@dataclass(frozen=True, slots=True)
class Checkup:
    """`speculates` is whether tokens were drafted, None where the profile drafts with no model."""

    speculates: bool | None
    findings: tuple[Finding, ...]


def warm_up(profile: Profile, record: Record) -> int | None:
    """Has a few tokens written; returns how many were drafted, None where no model drafts.

    Raises:
        OSError: the server did not answer, or went away.
    """
    drafts = profile.speculation.kind in KINDS_WITH_A_MODEL
    drafted = probe.warm_up(record, _DRAFT_PROBE_TOKENS if drafts else 1)
    return drafted if drafts else None


def check(profile: Profile, record: Record, props: dict[str, Any], drafted: int | None) -> Checkup:
    """Everything that is wrong with a server that answers, after its warm-up."""
    log_text = read_tail(Path(record.log_file), _WHOLE_LOG)
    found = findings_after_start(profile, log_text, props, probe.slots_of(record), drafted)
    return Checkup(None if drafted is None else drafted > 0, tuple(asdict(one) for one in found))


def require_own_model(props: dict[str, Any] | None, profile: Profile) -> None:
    """Raises ServerError for a router, which is healthy at once and has loaded nothing."""
    if probe.is_router(props):
        raise ServerError(
            f"the server of profile {profile.name!r} came up as a router, without a model of its own",
            "remove what makes it one (extra_args, a configuration file in /etc/llama.cpp)",
        )
