"""Has a server read a prompt without writing anything, so that a request that begins like it finds it read.

On the path of the start of a run: only the standard library, and of that nothing heavy.
"""

import json
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from agent.server.loopback import request_json
from agent.server.record import Record

# A server that shows progress is never silent for long while it reads, but somebody else may have the slot.
_SILENCE_SECONDS = 900.0
_SLOTS_SECONDS = 0.25
_LONGEST_LINE = 16 * 1024 * 1024

Progress = Callable[[int, int, int], None]
"""Called with the tokens of the prompt, how many of them came from the cache, and how many are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What it cost: `tokens` in the slot, `evaluated` of them now, in `seconds`; `slot` is its number."""

    tokens: int
    evaluated: int
    seconds: float
    slot: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotLook:
    """One slot of `/slots`: what it holds (tokens), and the number of its last task (-1: never used)."""

    number: int
    tokens: int
    task: int
    is_busy: bool


def look_at_slots(record: Record, timeout: float = _SLOTS_SECONDS) -> list[SlotLook] | None:
    """All slots; None where the server does not answer at once, which a busy one does not."""
    try:
        status, said = request_json(
            record.port, "GET", "/slots", record.api_key, timeout=timeout, host=record.host
        )
    except OSError:
        return None
    if status != 200 or not isinstance(said, list):
        return None
    looks = [look for one in said if isinstance(one, dict) and (look := _look(one)) is not None]
    return looks if looks and len(looks) == len(said) else None


def last_task(slots: list[SlotLook]) -> int:
    """The number of the task that came last, which is another one as soon as anybody uses the server."""
    return max(slot.task for slot in slots)


class Reading:
    """One prompt being read. `begin`, then `finish`; `cancel` from any thread ends both."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._connection: socket.socket | None = None
        self._cancelled = False

    def begin(self, prompt: str) -> bool:
        """Sends the prompt; False where the server cannot be reached."""
        record = self._record
        # Nothing is asked for but the prompt; llama-server samples one token nevertheless, and forgets it.
        body = {
            "prompt": prompt,
            "n_predict": 0,
            "cache_prompt": True,
            "stream": True,
            "return_progress": True,
        }
        payload = json.dumps(body).encode("utf-8", "replace")
        head = (
            f"POST /completion HTTP/1.0\r\nHost: {record.host}:{record.port}\r\nConnection: close\r\n"
            f"Authorization: Bearer {record.api_key}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(payload)}\r\n\r\n"
        )
        try:
            self._connection = socket.create_connection((record.host, record.port), timeout=5.0)
            self._connection.settimeout(_SILENCE_SECONDS)
            self._connection.sendall(head.encode("ascii") + payload)
        except OSError:
            self.cancel()
            return False
        if self._cancelled:
            self.cancel()
        return not self._cancelled

    def finish(self, progress: Progress | None = None) -> Read | None:
        """Waits for the end; None where it failed or was cancelled."""
        if self._connection is None:
            return None
        try:
            with self._connection.makefile("rb") as answer:
                if b" 200 " not in answer.readline(200):
                    return None
                while line := answer.readline(_LONGEST_LINE):
                    if line.startswith(b"data:"):
                        said = _parsed(line[5:])
                        if (read := _read_in(said)) is not None:
                            return None if self._cancelled else read
                        _tell(said, progress)
        except OSError:
            return None
        finally:
            self.cancel()
        return None

    def cancel(self) -> None:
        """Ends the reading: the server stops after the batch that it works on."""
        self._cancelled = True
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()


def rendered(record: Record, body: dict[str, Any]) -> str | None:
    """The text that the server makes of a chat request (`/apply-template`); None where it cannot say."""
    try:
        status, answer = request_json(
            record.port, "POST", "/apply-template", record.api_key, body, host=record.host
        )
    except OSError:
        return None
    prompt = answer.get("prompt") if status == 200 and isinstance(answer, dict) else None
    return prompt if isinstance(prompt, str) else None


def _look(slot: dict[str, Any]) -> SlotLook | None:
    following = slot.get("next_token")
    pieces = following[0] if isinstance(following, list) and following else following
    decoded = pieces.get("n_decoded", 0) if isinstance(pieces, dict) else 0
    told = (slot.get("id"), slot.get("id_task", -1), slot.get("n_prompt_tokens", 0), decoded)
    numbers = [one for one in told if isinstance(one, int)]
    if len(numbers) < len(told):
        return None
    number, task, tokens, decoded = numbers
    is_busy = bool(slot.get("is_processing"))
    return SlotLook(number=number, tokens=tokens + decoded, task=task, is_busy=is_busy)


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        said = json.loads(line)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _read_in(said: dict[str, Any]) -> Read | None:
    timings = said.get("timings")
    if not said.get("stop") or not isinstance(timings, dict):
        return None
    try:
        return Read(
            tokens=int(timings.get("cache_n", 0)) + int(timings["prompt_n"]),
            evaluated=int(timings["prompt_n"]),
            seconds=float(timings["prompt_ms"]) / 1000,
            slot=int(said.get("id_slot", 0)),
        )
    except (KeyError, TypeError, ValueError):
        return None


def _tell(said: dict[str, Any], progress: Progress | None) -> None:
    told = said.get("prompt_progress")
    if progress is None or not isinstance(told, dict):
        return
    total, cached, processed = (told.get(name) for name in ("total", "cache", "processed"))
    if isinstance(total, int) and isinstance(cached, int) and isinstance(processed, int):
        progress(total, cached, processed)
