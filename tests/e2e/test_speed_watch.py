"""A session that drafting makes slower than it was measured is told so once, or goes on with shorter drafts,
and without if those do not help.
"""

import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Done, Place
from tests.server.gguf_models import dense

pytestmark = pytest.mark.timeout(300)

MANAGED = (sys.executable, "-m", "tests.e2e.managed")
PROFILE = """\
context = 8192
[target]
file = "tiny.gguf"
[draft]
file = "draft.gguf"
[speculation]
kind = "draft"
[model_card]
attempts = 2
attempt_steps = 3
"""
TRIAL = {"tool_calls": [{"name": "glob", "arguments": {"pattern": "*.md"}}]}
FINISH = {"tool_calls": [{"name": "finish", "arguments": {"answer": "Done."}}]}
WORDS = " ".join(f"line-{number}" for number in range(20))


def write(name: str) -> dict[str, Any]:
    """A reply that is long enough to be timed; it drafts, and half of it is taken."""
    arguments = {"path": name, "content": f"{name} {WORDS}\n"}
    return {"tool_calls": [{"name": "write", "arguments": arguments}], "drafted": 40, "accepted": 20}


@pytest.fixture
def slow(place: Place) -> Iterator[Place]:
    """A place whose server was once ten times as fast as it is now."""
    place.profile("mine", PROFILE)
    models = place.folder / "data" / "models"
    models.mkdir(parents=True)
    dense(models / "tiny.gguf")
    dense(models / "draft.gguf")
    place.variables["AGENT_PROFILE"] = "mine"
    use_script(place, TRIAL, FINISH, write("a.txt"), write("b.txt"), write("c.txt"), write("d.txt"), FINISH)
    assert run(place, "-p", "Hello").code == 0
    [record] = server_records(place)
    remember(place, record["fingerprint"])
    yield place
    for record in server_records(place):
        with contextlib.suppress(ProcessLookupError):
            os.kill(record["pid"], signal.SIGKILL)


def use_script(place: Place, *steps: dict[str, Any]) -> None:
    script = place.folder / "script.json"
    script.write_text(json.dumps(steps), "utf-8")
    engine = [sys.executable, "-m", "tests.e2e.scripted_engine", str(script)]
    place.variables["ENGINE"] = json.dumps(engine)


def remember(place: Place, fingerprint: str) -> None:
    """What a benchmark would have stored. The scripted server decodes 100 tok/s."""
    baseline = {
        "profile": "mine",
        "suite": "agent",
        "decode_rate": 1000.0,
        "prompt_rate": 5000.0,
        "speculation": "draft",
        "accept_rate": 0.8,
        "machine": "this one",
        "samples": 9,
        "measured_at": "2026-01-01T00:00:00+00:00",
    }
    (place.state / "baselines.json").write_text(json.dumps({fingerprint: {"agent": baseline}}), "utf-8")


def run(place: Place, *arguments: str) -> Done:
    return place.run(*arguments, program=MANAGED)


def server_records(place: Place) -> list[dict[str, Any]]:
    found: list[Path] = sorted(place.state.glob("run/*.record.json"))
    return [json.loads(path.read_text("utf-8")) for path in found]


def texts(done: Done) -> list[str]:
    return [record["text"] for record in done.records if record["type"] == "notice"]


def test_slow_session_is_told_once_with_the_remedy(slow: Place):
    done = run(slow, "-p", "Write", "--output", "jsonl")
    [notice] = [text for text in texts(done) if "slower" in text]
    assert done.code == 0
    assert notice == (
        "decoding is slower than it was measured: 100.0 tok/s over the last 3 replies, baseline 1000.0 tok/s "
        '(10% of it), acceptance 50%, baseline 80%; to go without the draft: server.fallback = "plain"'
    )
    assert len(server_records(slow)) == 1


def test_next_attempt_has_shorter_drafts_where_that_is_wanted(slow: Place):
    slow.variables["AGENT_SERVER_FALLBACK"] = "plain"
    [before] = server_records(slow)
    use_script(slow, write("done.txt"), FINISH)  # for the server that is to come
    done = run(slow, "-p", "Write", "--check", "test -f done.txt", "--output", "jsonl")

    assert (done.code, done.result["files_changed"]) == (0, ["done.txt"])
    remedies = [text.rpartition("; ")[2] for text in texts(done) if "slower" in text]
    assert remedies == ["from the next turn on it drafts at most 1 token at once"]
    [cost] = [record["cause"] for record in done.records if "drafts at most" in record.get("cause", "")]
    assert cost.startswith("the server drafts at most 1 token at once, with an empty prompt cache (")
    [after] = server_records(slow)
    assert after["fingerprint"] != before["fingerprint"]
    assert after["pid"] != before["pid"]
    assert (after["draft_limit"], after["degraded"]) == (1, False)


def test_third_attempt_goes_without_the_draft_where_shorter_ones_did_not_help(slow: Place):
    slow.variables["AGENT_SERVER_FALLBACK"] = "plain"
    slow.profile("mine", PROFILE.replace("attempts = 2", "attempts = 3"))
    use_script(slow, *[write(f"{number}.txt") for number in range(9)])
    done = run(slow, "-p", "Write", "--check", "test -f done.txt", "--output", "jsonl")

    assert done.code == 1
    causes = [record.get("cause", "") for record in done.records if record["type"] == "prefix_broken"]
    assert [cause.partition(",")[0] for cause in causes if cause.startswith("the server")] == [
        "the server drafts at most 1 token at once",
        "the server goes on without the draft",
    ]
    [after] = server_records(slow)
    assert (after["speculation"], after["draft_limit"], after["degraded"]) == ("none", 0, True)


def test_damaged_baseline_is_no_baseline(slow: Place):
    (slow.state / "baselines.json").write_text('{"x": [', "utf-8")
    done = run(slow, "-p", "Write", "--output", "jsonl")
    assert done.code == 0
    assert not [text for text in texts(done) if "slower" in text]
