"""The real program in a real pseudo-terminal, and a screen that is drawn as a terminal draws it."""

import os
import re
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import pexpect
import pyte

from tests.e2e.conftest import Place

PATIENCE_SECONDS = 60.0
CONTROL_C, CONTROL_D, CONTROL_G, CONTROL_J, CONTROL_R = "\x03", "\x04", "\x07", "\n", "\x12"
ENTER, ALT_ENTER, ESCAPE, TAB, SHIFT_TAB, BACKSPACE = "\r", "\x1b\r", "\x1b", "\t", "\x1b[Z", "\x7f"
UP, DOWN, F2 = "\x1b[A", "\x1b[B", "\x1bOQ"

_MODE = re.compile(rb"\x1b\[\?([\d;]+)([hl])")
# The screen model knows neither the keyboard protocol nor questions about modes.
_UNKNOWN_TO_PYTE = re.compile(rb"\x1b\[[<>=][\d;]*[a-zA-Z]|\x1b\[\?[\d;]*\$p")
_UNFINISHED = re.compile(rb"\x1b(?:\[[\d;?<>=$]*)?\Z")
_MOUSE_MODES = (1000, 1002, 1003, 1006, 1015)


class Terminal:
    """A terminal in which `agent ARGUMENTS` runs. `size` is columns and rows."""

    def __init__(
        self,
        place: Place,
        *arguments: str,
        size: tuple[int, int] = (120, 36),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        columns, rows = size
        self.raw = b""
        self.modes: dict[int, bool] = {}
        self.has_ended = False
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._pending = b""
        variables = {**place.environment, "TERM": "xterm-256color", "LANG": "C.UTF-8", **(environment or {})}
        self._child: Any = pexpect.spawn(
            sys.executable,
            ["-m", "agent", *arguments],
            cwd=str(place.workspace),
            env=variables,
            dimensions=(rows, columns),
            timeout=PATIENCE_SECONDS,
        )

    # -- what is seen --------------------------------------------------------------------------------

    @property
    def rows(self) -> list[str]:
        return [row.rstrip() for row in self._screen.display]

    @property
    def text(self) -> str:
        return "\n".join(self.rows)

    @property
    def prompt(self) -> str:
        """What stands in the input field: the last rows that a bar marks, without the row of hints."""
        field: list[str] = []
        for row in reversed(self.rows):
            if row.startswith(" █"):
                field.insert(0, row[2:].strip())
            elif field:
                break
        text = "\n".join(row for row in field if not row.endswith("F1 help")).strip()
        return "" if text == "Ask for something" else text

    @property
    def pid(self) -> int:
        return self._child.pid

    def until(self, condition: Callable[[], object] | str, patience: float = PATIENCE_SECONDS) -> None:
        """Draws what comes until `condition` is true, or a text is on the screen. `patience` in seconds."""

        def is_met() -> bool:
            return condition in self.text if isinstance(condition, str) else bool(condition())

        deadline = time.monotonic() + patience
        while not is_met():
            if time.monotonic() > deadline or (self.has_ended and not is_met()):
                state = "it has ended" if self.has_ended else "nothing more came"
                raise AssertionError(f"{condition!r} was not met, {state}. The screen:\n{self.text}")
            self._draw()
        assert "Traceback" not in self.text, self.text

    def until_ready(self) -> None:
        """The session is open and the input field is there."""
        self.until("● ready")

    def _draw(self) -> None:
        """Takes what has come; waits a little for it where nothing has."""
        try:
            data = self._child.read_nonblocking(65_536, timeout=0.05)
        except pexpect.TIMEOUT:
            return
        except pexpect.EOF:
            self.has_ended = True
            return
        self.raw += data
        data = self._pending + data
        cut = _UNFINISHED.search(data)
        self._pending = data[cut.start() :] if cut else b""
        data = data[: cut.start()] if cut else data
        for numbers, switch in _MODE.findall(data):
            self.modes.update({int(number): switch == b"h" for number in numbers.split(b";")})
        self._stream.feed(_UNKNOWN_TO_PYTE.sub(b"", data))

    # -- what a person does --------------------------------------------------------------------------

    def press(self, *keys: str) -> None:
        for key in keys:
            self._child.send(key.encode("utf-8"))

    def type(self, text: str) -> None:
        """Types a text and waits until the end of it stands in the input field."""
        self.press(text)
        end = text.splitlines()[-1][-30:].rstrip()
        self.until(lambda: end in self.prompt)

    def say(self, text: str, key: str = ENTER) -> None:
        """Types a text and sends it."""
        self.type(text)
        self.press(key)
        self.until(lambda: text.splitlines()[-1][-30:].rstrip() not in self.prompt)

    def paste(self, text: str) -> None:
        self.press(f"\x1b[200~{text}\x1b[201~")

    def answer(self, key: str) -> None:
        """Answers the open question; again if the panel was so new that it took the key for typing."""
        while True:
            self.press(key)
            self.until(lambda: not self.is_asking or "Enter denies" in self.text or self.prompt == key)
            if self.prompt != key:
                return
            self.press(BACKSPACE, TAB)
            self.until(lambda: self.prompt == "")

    @property
    def is_asking(self) -> bool:
        return "1 yes" in self.text

    def resize(self, columns: int, rows: int) -> None:
        self._screen.resize(rows, columns)
        self._child.setwinsize(rows, columns)

    # -- how it ends ---------------------------------------------------------------------------------

    def wait_for_end(self) -> int:
        """The exit code, or the negative signal that ended it."""
        self.until(lambda: self.has_ended)
        self._child.wait()
        code = self._child.exitstatus
        return code if code is not None else -self._child.signalstatus

    def quit(self) -> int:
        self.type("/quit")
        self.press(ENTER)
        return self.wait_for_end()

    def kill(self) -> None:
        """As the system does when memory is short."""
        self._child.kill(signal.SIGKILL)
        self.wait_for_end()

    def hang_up(self) -> None:
        """Closes the window."""
        process = os.pidfd_open(self.pid)
        self._child.ptyproc.fileobj.close()
        self._child.closed = self._child.ptyproc.closed = self.has_ended = True
        assert select.select([process], [], [], PATIENCE_SECONDS)[0], "it outlived its terminal"
        os.close(process)
        self._child.ptyproc.wait()

    def close(self) -> None:
        if self._child.isalive():
            self._child.kill(signal.SIGKILL)
            self._child.ptyproc.wait()  # pexpect itself waits a tenth of a second and gives up
        self._child.close()

    @property
    def is_restored(self) -> bool:
        """Whether the program left the terminal as it found it."""
        switched_on = [mode for mode in (1049, 2004, 1004, *_MOUSE_MODES) if self.modes.get(mode)]
        return not switched_on and self.modes.get(25, True)
