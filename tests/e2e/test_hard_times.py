"""Runs on a disk that takes no more."""

import pytest

from tests.conftest import StartServer
from tests.e2e.conftest import AGENT, Place
from tests.fakes.script import call

pytestmark = pytest.mark.timeout(300)

SMALL_FILES = ("bash", "-c", 'ulimit -f 4; exec "$@"', "bash", *AGENT)
"""No file may become larger than 4 KiB, as on a disk that is full."""


def test_a_disk_that_takes_no_more_ends_the_record_and_not_the_work(
    place: Place, scripted_server: StartServer
):
    (place.workspace / "long.txt").write_text("line\n" * 300, "utf-8")
    place.use(scripted_server(call("read", path="long.txt"), call("read", path="long.txt"), "Done.").url)
    done = place.run("run", "-p", "Work", "--output", "json", program=SMALL_FILES)
    assert done.code == 0, done.err
    assert "no longer recorded completely" in done.err
    assert place.run("session", "list").code == 0
    place.use(scripted_server("On.").url)
    again = place.run("run", "--continue", "-p", "Go on", "--output", "json")
    assert again.code == 0, again.err
