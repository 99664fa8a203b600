"""Where the program looks at the clock on the wall, which may be set by days at any moment.

Durations and limits are measured by the monotonic clock. What is named here shows a time to people, orders
what is kept, or compares with the times of files and of other programs: a jump does no harm there.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
KNOWN = {
    "agent/app/files/authorship.py",  # beside the monotonic clock
    "agent/app/batch/plan.py",  # ids, which come after all that are known
    "agent/app/measure/benching.py",  # shown, and names of folders
    "agent/app/servers/early.py",  # ages of files, those of the future being the oldest
    "agent/app/chat/interactive.py",  # shown, and told to the model
    "agent/app/run/job.py",  # told to the model, where a run goes on on another day
    "agent/app/chat/live.py",  # told to the model, and again where it is another day
    "agent/app/services/session_bench.py",  # names of folders
    "agent/app/measure/tuning.py",  # shown, and names of files
    "agent/cli/session.py",  # shown: how long ago a session was
    "agent/core/attempts.py",  # shown
    "agent/mcp/known.py",  # a note
    "agent/mcp/log.py",  # shown
    "agent/mcp/sign_in.py",  # when a token ends, as its server said
    "agent/sandbox/session_folder.py",  # only what has no lock, and was just begun or is a day old
    "agent/server/identity.py",  # where the system does not tell the age of a process
    "agent/server/install.py",  # shown
    "agent/server/process.py",  # shown
    "agent/server/slot_states.py",  # ages of files, those of the future being the oldest
    "agent/session/held.py",  # beside times of files: what is not sure is copied again
    "agent/session/ledger.py",  # which of two open sessions changed something last
    "agent/session/store.py",  # ids, which come after all that are known
    "agent/ui/entry/draft.py",  # ages of files, those of the future being the oldest
}
_LOOKS = {
    ("time", "time"),
    ("time", "time_ns"),
    ("datetime", "now"),
    ("datetime", "utcnow"),
    ("date", "today"),
}


def looks_in(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            owner = node.value
            name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
            if (name, node.attr) in _LOOKS:
                yield f"{name}.{node.attr}"


def test_the_clock_on_the_wall_is_looked_at_only_where_a_jump_does_no_harm():
    paths = (path for folder in ("agent", "tools") for path in (ROOT / folder).rglob("*.py"))
    looking = {path.relative_to(ROOT).as_posix() for path in paths if any(looks_in(path.read_text("utf-8")))}
    assert sorted(looking - KNOWN) == [], "measure with time.monotonic(), or say here why a jump does no harm"


def test_every_way_to_look_is_known():
    source = (
        "import time, datetime\ntime.time()\nf(time.time_ns)\ndatetime.datetime.now()\ntime.monotonic()\n"
    )
    assert sorted(looks_in(source)) == ["datetime.now", "time.time", "time.time_ns"]
