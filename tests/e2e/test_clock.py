"""A clock that is set by days in the middle of everything changes no duration, limit or order."""

from pathlib import Path

import pytest

from tests.conftest import StartServer
from tests.e2e.conftest import ROOT, Place
from tests.fakes.script import call

pytestmark = pytest.mark.timeout(300)

JUMPING = '''
"""Read by Python at its start: each look at the clock is two days from the one before."""

import datetime
import time

_looks = 0
_true_time = time.time
_true_datetime = datetime.datetime


def _jump():
    global _looks
    _looks += 1
    return DAYS * 86400 * (1 if _looks % 2 else -1)


class _Datetime(_true_datetime):
    @classmethod
    def now(cls, tz=None):
        return _true_datetime.now(tz) + datetime.timedelta(seconds=_jump())


time.time = lambda: _true_time() + _jump()
datetime.datetime = _Datetime
'''


STANDING_OFF = JUMPING.replace("* (1 if _looks % 2 else -1)", "")
"""Each look at the clock is as far from the truth as the one before."""


def jumping(folder: Path, days: int = 1, script: str = JUMPING) -> dict[str, str]:
    (folder / "clock").mkdir(exist_ok=True)
    (folder / "clock" / "sitecustomize.py").write_text(script.replace("DAYS", str(days)), encoding="utf-8")
    return {"PYTHONPATH": f"{folder / 'clock'}:{ROOT}"}


@pytest.mark.parametrize("days", [1, -1])
def test_a_run_whose_clock_jumps_is_like_any_other(place: Place, scripted_server: StartServer, days: int):
    server = scripted_server(
        call("shell", command="echo made > made.txt; sleep 0.1", timeout=60), call("finish", answer="Done.")
    )
    place.use(server.url)
    done = place.run(
        *("run", "-p", "Make it", "--output", "json", "--max-seconds", "200", "--check", "test -f made.txt"),
        *("--allow", "shell(*)"),
        environment=jumping(place.folder, days),
    )
    assert done.code == 0, done.err
    assert (place.workspace / "made.txt").read_text("utf-8") == "made\n"
    assert done.result["reason"] == "done"
    [session] = place.sessions()
    lengths = [event["seconds"] for event in session if event["type"] in ("tool_finished", "check_finished")]
    lengths.append(done.result["seconds"])
    assert all(0 <= seconds < 200 for seconds in lengths)


@pytest.mark.parametrize(("first", "second"), [(0, -30), (400, 0)])
def test_the_last_session_is_the_one_that_goes_on_although_the_clock_was_set_back(
    place: Place, scripted_server: StartServer, first: int, second: int
):
    server = scripted_server("One.", "Two.", "Three.")
    place.use(server.url)
    for words, days in (("The first", first), ("The second", second)):
        off = jumping(place.folder, days, STANDING_OFF)
        assert place.run("run", "-p", words, environment=off).code == 0
    assert place.run("run", "--continue", "-p", "Go on").code == 0
    last = [message["content"] for message in server.chats[-1].body["messages"] if message["role"] == "user"]
    assert "The second" in str(last)
    assert "The first" not in str(last)
