"""A terminal that goes away, and faults that nobody may miss."""

import asyncio
import io
import os
import select
import signal
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from threading import Thread
from threading import enumerate as enumerate_threads

from textual._ansi_sequences import SYNC_END, SYNC_START
from textual.app import App
from textual.css.query import NoMatches
from textual.drivers._writer_thread import WriterThread
from textual.events import Key, Resize
from textual.message import Message
from textual.widget import Widget

from agent.ui.app import AgentApp
from agent.ui.driver import LastingDriver, UntilItIsGone, WakingEvent
from agent.ui.options import UiOptions
from tests.ui.rig import Rig, until


class Gone(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(5, "Input/output error")

    def flush(self) -> None:
        raise OSError(5, "Input/output error")


async def test_a_screen_that_is_taken_away_in_the_first_moment_is_no_fault():
    tried: list[str] = []

    def find_nothing() -> Widget:
        tried.append("once")
        raise NoMatches("No nodes match '#conversation-slot'")

    rig = Rig()
    rig.app.make_conversation = find_nothing
    async with rig.app.run_test() as pilot:
        await until(pilot, lambda: tried)
    assert rig.app.desk is None


def test_what_a_terminal_that_is_gone_does_not_take_is_dropped():
    terminal = UntilItIsGone(Gone())
    assert terminal.write("text") == 4
    terminal.flush()


def test_a_terminal_gets_what_it_takes():
    file = io.StringIO()
    UntilItIsGone(file).write("text")
    assert file.getvalue() == "text"


def test_the_application_uses_it(tmp_path: Path):
    async def never(_):
        raise AssertionError

    assert AgentApp(UiOptions(workspace=tmp_path, open_session=never)).driver_class is LastingDriver


async def test_a_fault_while_the_session_opens_is_told_in_one_line():
    rig = Rig()

    async def broken(_):
        raise KeyError("oops")

    rig.app.options = UiOptions(workspace=rig.app.options.workspace, open_session=broken)
    async with rig.app.run_test() as pilot:
        await until(pilot, lambda: rig.lines)
        assert rig.lines == ["that did not work: KeyError: 'oops'"]
        assert rig.app.desk is not None
        assert rig.app.desk.live.has_failed


class Heard(LastingDriver):
    """Keeps the keys that it is sent, and what it writes."""

    def __init__(self, terminal: int) -> None:
        super().__init__(App())
        self.fileno = terminal
        self.keys: Queue[str] = Queue()
        self.written: Queue[str | None] = Queue()
        self._writer_thread = Written(self.written)

    def process_message(self, message: Message) -> None:
        if isinstance(message, Key):
            self.keys.put(message.key)


class Written(WriterThread):
    """Is asked to write, and never does."""

    def __init__(self, queue: Queue[str | None]) -> None:
        super().__init__(io.StringIO())
        self._queue = queue


@contextmanager
def listening() -> Iterator[tuple[Heard, int, Thread]]:
    """A driver that waits for keys, and the end of the terminal where they are typed."""
    typing, terminal = os.openpty()
    tty.setraw(terminal)
    driver = Heard(terminal)
    thread = Thread(target=driver.run_input_thread)
    thread.start()
    try:
        yield driver, typing, thread
    finally:
        driver.exit_event.set()
        thread.join(30)
        os.close(typing)
        os.close(terminal)


async def test_what_is_typed_arrives_and_a_lone_escape_is_a_key():
    with listening() as (driver, typing, _):
        os.write(typing, "aß".encode()[:2])
        assert driver.keys.get(timeout=30) == "a"
        os.write(typing, "ß".encode()[1:] + b"\x1b[A\x1b")
        assert [driver.keys.get(timeout=30) for _ in range(3)] == ["ß", "up", "escape"]


async def test_one_that_waits_for_keys_stops_when_it_is_told_to():
    with listening() as (driver, _, thread):
        driver.exit_event.set()
        thread.join(30)
        assert not thread.is_alive()


class Sized(App[None]):
    """Keeps the sizes that it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: asyncio.Queue[tuple[int, int]] = asyncio.Queue()

    async def _post_message(self, message: Message) -> bool:
        assert isinstance(message, Resize)
        self.sizes.put_nowait((message.size.width, message.size.height))
        return True


class PulledTwice(LastingDriver):
    """In a terminal whose size changes again while the program looks at it."""

    def __init__(self, app: App[None], terminal: int) -> None:
        super().__init__(app)
        self.fileno = terminal
        self._file = io.StringIO()
        self._sizes = [(120, 36), (20, 5), (80, 24)]

    def _get_terminal_size(self) -> tuple[int, int]:
        size = self._sizes.pop()
        if size == (20, 5):
            signal.raise_signal(signal.SIGWINCH)
        return size


async def test_a_size_that_comes_while_the_one_before_is_looked_at_is_told_last():
    with listening() as (listener, _, _):
        app = Sized()
        driver = PulledTwice(app, listener.fileno)
        driver.start_application_mode()
        try:
            signal.raise_signal(signal.SIGWINCH)
            async with asyncio.timeout(60):
                sizes = [await app.sizes.get() for _ in range(3)]
        finally:
            driver.stop_application_mode()
            driver.close()
    assert sizes == [(80, 24), (20, 5), (120, 36)]


def key_threads() -> int:
    return sum(thread.name == "textual-input" for thread in enumerate_threads())


async def test_being_stopped_and_continued_starts_nothing_a_second_time():
    typing, terminal = os.openpty()
    rig, screen = Rig(), os.fdopen(os.dup(terminal), "w")
    app = rig.app
    before = key_threads()
    driver = LastingDriver(app)
    driver.fileno, driver._file, driver._app = terminal, screen, app
    async with app.run_test():
        driver.start_application_mode()
        try:
            for is_taken_by_a_shell in (False, True):
                if is_taken_by_a_shell:
                    tty.setcbreak(terminal)
                    modes = termios.tcgetattr(terminal)
                    modes[3] |= termios.ICANON
                    termios.tcsetattr(terminal, termios.TCSANOW, modes)
                signal.raise_signal(signal.SIGCONT)
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                assert key_threads() == before + 1
                assert not termios.tcgetattr(terminal)[3] & termios.ICANON
        finally:
            driver.stop_application_mode()
        signal.raise_signal(signal.SIGCONT)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert key_threads() == before
        driver.close()
    screen.close()
    os.close(typing)
    os.close(terminal)


async def test_a_frame_is_written_in_one_piece_with_its_marks():
    driver = Heard(0)
    for piece in ("before", SYNC_START, "frame", SYNC_END, "after"):
        driver.write(piece)
    written = [driver.written.get(timeout=30) for _ in range(3)]
    assert written == ["before", f"{SYNC_START}frame{SYNC_END}", "after"]


def test_an_event_can_be_waited_for_together_with_files():
    event = WakingEvent()
    for _ in range(2):
        assert not select.select([event.reader], [], [], 0)[0]
        event.set()
        event.set()
        assert select.select([event.reader], [], [], 0)[0]
        event.clear()
