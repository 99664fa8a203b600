"""A tmux of its own, with the real program in it."""

import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable

from tests.e2e.conftest import Place

PATIENCE_SECONDS = 60.0
POLL_SECONDS = 0.05


class Tmux:
    """A tmux server of its own, in whose only window `agent` runs."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._socket = place.folder / "tmux"
        size = ("-x", "100", "-y", "30")
        where = ("-c", str(place.workspace))
        self.ask("-f", "/dev/null", "new-session", "-d", *size, *where, self._command())

    def _command(self, *arguments: str) -> str:
        return f"{shlex.join((sys.executable, '-m', 'agent', *arguments))}; echo ended with $?; cat"

    def start_again(self, *arguments: str) -> None:
        """Runs `agent ARGUMENTS` in place of what is in the window."""
        self.ask("respawn-pane", "-k", "-c", str(self._place.workspace), self._command(*arguments))

    def ask(self, *words: str) -> str:
        command = ["tmux", "-S", str(self._socket), *words]
        done = subprocess.run(
            command, env=self._place.environment, capture_output=True, check=True, encoding="utf-8"
        )
        return done.stdout

    def press(self, *keys: str) -> None:
        self.ask("send-keys", *keys)

    def say(self, text: str) -> None:
        """Types a text, and sends it when it stands there."""
        self.press("-l", text)
        self.until(lambda shown: text in shown)
        self.press("Enter")

    def answer(self, key: str, is_taken: Callable[[str], object]) -> None:
        """Answers the open question; again if the panel was so new that it took the key for typing."""
        typed = re.compile(rf"█ {key}\s*$", re.MULTILINE)
        self.press(key)
        self.until(lambda shown: is_taken(shown) or typed.search(shown))
        while not is_taken(self.shown):
            self.press("BSpace", "Tab")
            self.until(lambda shown: not typed.search(shown))
            self.press(key)
            self.until(lambda shown: is_taken(shown) or typed.search(shown))

    @property
    def shown(self) -> str:
        return self.ask("capture-pane", "-p")

    def until(self, is_met: Callable[[str], object], patience: float = PATIENCE_SECONDS) -> None:
        """Looks until `is_met` holds for what is shown. `patience` in seconds."""
        deadline = time.monotonic() + patience
        while not is_met(shown := self.shown):
            assert time.monotonic() < deadline, shown
            time.sleep(POLL_SECONDS)
