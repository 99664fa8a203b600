"""The interface inside of tmux, which is a terminal of its own kind between the program and the person's."""

import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from tests.conftest import StartServer
from tests.e2e.conftest import Place

PATIENCE_SECONDS = 60.0
POLL_SECONDS = 0.05
pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]


class Tmux:
    """A tmux server of its own, in whose only window `agent` runs."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._socket = place.folder / "tmux"
        command = f"{shlex.join((sys.executable, '-m', 'agent'))}; echo ended with $?; cat"
        size = ("-x", "100", "-y", "30")
        self.ask("-f", "/dev/null", "new-session", "-d", *size, "-c", str(place.workspace), command)

    def ask(self, *words: str) -> str:
        command = ["tmux", "-S", str(self._socket), *words]
        done = subprocess.run(
            command, env=self._place.environment, capture_output=True, check=True, encoding="utf-8"
        )
        return done.stdout

    def press(self, *keys: str) -> None:
        self.ask("send-keys", *keys)

    def until(self, is_met: Callable[[str], object]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_met(shown := self.ask("capture-pane", "-p")):
            assert time.monotonic() < deadline, shown
            time.sleep(POLL_SECONDS)


@pytest.fixture
def tmux(place: Place, scripted_server: StartServer) -> Iterator[Tmux]:
    place.use(scripted_server("Said in tmux 合計 🙂.", "Said after it.").url)
    opened = Tmux(place)
    yield opened
    opened.ask("kill-server")


def test_typing_alt_enter_a_resize_and_leaving_work_in_tmux(tmux: Tmux):
    tmux.until(lambda shown: "● ready" in shown)
    tmux.press("-l", "Speak")
    tmux.press("Enter")
    tmux.until(lambda shown: "Said in tmux 合計 🙂." in shown and "tok/s" in shown)
    tmux.press("-l", "And again")
    tmux.press("M-Enter")
    tmux.until(lambda shown: "Said after it." in shown)
    tmux.ask("resize-window", "-x", "60", "-y", "20")
    tmux.until(lambda shown: "Said after it." in shown and shown.splitlines()[-1].strip().startswith("ask"))
    tmux.press("C-d")
    tmux.until(lambda shown: "ended with 0" in shown and "agent --resume" in shown)
