"""The reading end of a pipe whose writing end may be kept open by a process nobody waits for."""

import os
import threading
import time
from asyncio import AbstractEventLoop, Event
from collections.abc import Callable

_CHUNK_BYTES = 1 << 16
_LARGEST_PIPE_BYTES = 1 << 20
_DISCARD_PAUSE_SECONDS = 0.02


class PipeReader:
    """Passes on what comes out of a pipe, on the event loop, in pieces of at most 64 KiB."""

    def __init__(self, descriptor: int, loop: AbstractEventLoop, on_data: Callable[[bytes], None]) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._loop = loop
        self._on_data = on_data
        self.ended = Event()
        loop.add_reader(descriptor, self._read)

    def drain(self) -> None:
        """Reads what is in the pipe now, and no more than fits into one: a writer may never stop."""
        left = _LARGEST_PIPE_BYTES
        while left > 0 and not self.ended.is_set():
            read = self._read()
            if not read:
                return
            left -= read

    def close(self, keep_open: bool = False) -> None:
        """Stops reading.

        Args:
            keep_open: go on emptying the pipe, slowly and unseen, so that a process in the background
                is not killed for printing. It ends with the last writer or with this program.
        """
        self._loop.remove_reader(self._descriptor)
        if self.ended.is_set() or not keep_open:
            os.close(self._descriptor)
            return
        os.set_blocking(self._descriptor, True)
        threading.Thread(target=_discard, args=(self._descriptor,), daemon=True).start()

    def _read(self) -> int:
        try:
            data = os.read(self._descriptor, _CHUNK_BYTES)
        except BlockingIOError:
            return 0
        if data:
            self._on_data(data)
        else:
            self._loop.remove_reader(self._descriptor)
            self.ended.set()
        return len(data)


def _discard(descriptor: int) -> None:
    while os.read(descriptor, _CHUNK_BYTES):
        time.sleep(_DISCARD_PAUSE_SECONDS)
    os.close(descriptor)
