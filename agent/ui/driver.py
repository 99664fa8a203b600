"""The terminal, which may go away at any moment: a closed window, a broken ssh connection, a stopped job."""

import asyncio
import os
import signal
from codecs import getincrementaldecoder
from collections.abc import Iterable
from contextlib import suppress
from io import TextIOWrapper
from select import select
from threading import Event
from typing import IO, Any, cast

from textual._ansi_sequences import SYNC_END, SYNC_START
from textual._parser import ParseError
from textual._xterm_parser import XTermParser
from textual.constants import ESCAPE_DELAY
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

_MOST_BYTES = 4096  # of what is typed or pasted, at once


class UntilItIsGone:
    """Passes on to a terminal what it takes, and drops the rest.

    Textual writes in a thread behind a queue of limited length: if that thread died of a terminal that is
    gone, the program would wait for it for ever, and outlive its terminal.
    """

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, text: str) -> int:
        try:
            return self._file.write(text)
        except OSError:
            return len(text)

    def flush(self) -> None:
        try:
            self._file.flush()
        except OSError:
            return

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class WakingEvent(Event):
    """Can be waited for together with files: something can be read from `reader` while it is set."""

    def __init__(self) -> None:
        super().__init__()
        self.reader, self._writer = os.pipe()

    def set(self) -> None:
        if not self.is_set():
            os.write(self._writer, b".")
        super().set()

    def clear(self) -> None:
        if self.is_set():
            os.read(self.reader, 1)
        super().clear()


class LastingDriver(LinuxDriver):
    """As Textual's, for terminals that come and go, and for hours in which nobody types."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if isinstance(self._file, TextIOWrapper):
            # Keys are read as UTF-8 whatever the locale says. Under another one each line and mark would be
            # written as its escaped number, six cells instead of one.
            self._file.reconfigure(encoding="utf-8", errors="replace")
        self._file = cast("IO[str]", UntilItIsGone(self._file))
        self._stop = self.exit_event = WakingEvent()
        self._held: list[str] = []
        self._loop: asyncio.AbstractEventLoop | None = None  # while the terminal is the interface's

    def start_application_mode(self) -> None:
        super().start_application_mode()
        if self._key_thread is None or not self._key_thread.is_alive():
            return  # continued in the background, where the terminal belongs to others
        self._loop = asyncio.get_running_loop()
        look_at_size = signal.getsignal(signal.SIGWINCH)
        if callable(look_at_size):
            # Textual's handler can be interrupted by the next of its kind between its look at the size and
            # its message of it. Then the older size is told last, and is the one that stays.
            self._loop.add_signal_handler(signal.SIGWINCH, look_at_size, signal.SIGWINCH, None)

    def stop_application_mode(self) -> None:
        self._loop = None
        super().stop_application_mode()

    def write(self, data: str) -> None:
        """Hands over a frame in one piece with its marks, because each piece wakes the thread that writes."""
        if data != SYNC_START and not self._held:
            super().write(data)
            return
        self._held.append(data)
        if data == SYNC_END:
            whole, self._held = "".join(self._held), []
            super().write(whole)

    def run_input_thread(self) -> None:
        """Passes on what is typed, until it is told to stop; sleeps while there is nothing.

        Textual's looks ten times a second whether it is to stop, and whether a lone ESC was a key.
        """
        parser = XTermParser(self._debug)
        decode = getincrementaldecoder("utf-8")().decode
        waited_for = [self.fileno, self._stop.reader]
        try:
            while not self._stop.is_set():
                is_in_doubt = parser._timeout_time is not None
                ready, _, _ = select(waited_for, [], [], ESCAPE_DELAY if is_in_doubt else None)
                if self.fileno in ready:
                    data = os.read(self.fileno, _MOST_BYTES)
                    if not data:  # the end of it, which could be read again and again
                        waited_for = [self._stop.reader]
                    elif text := decode(data):
                        self._pass_on(parser.feed(text))
                self._pass_on(parser.tick())
        finally:
            with suppress(EOFError, ParseError):
                list(parser.feed(""))

    def _pass_on(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self.process_message(message)

    def _sigtstp_application(self, *arguments: Any) -> None:
        if self._loop is None:  # it has ended, or left the terminal to an editor
            os.kill(os.getpid(), signal.SIGSTOP)
            return
        super()._sigtstp_application(*arguments)

    def _sigcont_application(self, *arguments: Any) -> None:
        import termios

        try:
            termios.tcgetattr(self.fileno)
        except termios.error:  # the system also sends it when it takes the terminal away
            return
        if self._must_signal_resume:
            super()._sigcont_application(*arguments)
        elif self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed: the program ends
                self._loop.call_soon_threadsafe(self._take_up_again)

    def _take_up_again(self) -> None:
        """After SIGSTOP, of which nobody is told. Textual would start a second time, beside what still runs:
        two threads would share the keys, and one of them would never end.
        """
        import termios

        if self._loop is None:
            return
        with suppress(termios.error):
            if termios.tcgetattr(self.fileno)[3] & termios.ICANON:  # a shell had the terminal meanwhile
                self.suspend_application_mode()
                self._must_signal_resume = True
                self.resume_application_mode()
        self._app.refresh(layout=True)
