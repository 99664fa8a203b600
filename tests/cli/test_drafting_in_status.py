"""What `agent server status` says about the drafting of a server."""

from typing import Any

import pytest

from agent.cli.server_view import _drafting
from agent.server.record import Record
from agent.server.status import panel


def record(**changes: Any) -> Record:
    """Of a server that is long gone."""
    values = {
        "pid": 2**22 + 1, "identity": "none", "port": 1, "profile": "p", "fingerprint": "f", "state": "ready",
        "key_file": "", "spec_file": "", "log_file": "", "started": 0.0, **changes,
    }  # fmt: skip
    return Record(**values)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"speculation": "dflash", "speculates": True}, "drafts with dflash"),
        (
            {"speculation": "dflash", "speculates": True, "draft_limit": 2},
            "drafts with dflash, at most 2 at once: longer drafts did not pay",
        ),
        ({"degraded": True}, "runs without its draft model, with which it crashed or was slower"),
        ({"speculation": "dflash", "speculates": False}, "dflash is OFF: it drafts nothing"),
        ({}, "drafts nothing"),
    ],
)
def test_line_about_drafting_is_what_really_runs(changes: dict[str, Any], text: str):
    assert _drafting(panel(record(**changes))) == text
