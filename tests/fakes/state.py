"""What the scripted server knows while it serves: the script, the slot, and every request so far."""

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fakes import chat
from tests.fakes.script import Script, Step, parse_step

CHAT_PATHS = ("/v1/chat/completions", "/chat/completions")
_CAPS = ("supports_tools", "supports_tool_calls", "supports_system_role", "supports_string_content")


@dataclass(slots=True)
class RecordedRequest:
    """A request as it arrived. Times are those of `time.monotonic()`.

    `cached_tokens` and `prompt_tokens` (all of the prompt) are counted for chat requests. `replied_at` is
    when the last byte was written; `aborted` says that the client left before that.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    arrived_at: float
    cached_tokens: int = 0
    prompt_tokens: int = 0
    replied_at: float | None = None
    aborted: bool = False
    ended: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def is_chat(self) -> bool:
        return self.path in CHAT_PATHS


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """What the server pretends to be.

    `loading` is the number of health checks that still get a 503; until then nothing else is served.
    `strict` refuses a history that holds malformed tool arguments. Each request is appended to `record`
    when it ends. Only one slot keeps a prompt, whatever `total_slots` says. It promises a context of
    `promised_n_ctx` tokens (0: what is true, `n_ctx`). Paths in `missing` are not served. With
    `dies_at` it stops answering anything, health checks too, once so many chats have arrived (0: never).
    """

    api_key: str = ""
    model: str = "scripted"
    n_ctx: int = 32_768
    total_slots: int = 1
    loading: int = 0
    strict: bool = False
    vision: bool = False
    promised_n_ctx: int = 0
    missing: tuple[str, ...] = ()
    dies_at: int = 0
    caps: Mapping[str, bool] = field(default_factory=lambda: dict.fromkeys(_CAPS, True))
    record: Path | None = None


class ServerState:
    """Shared by the threads of all connections; a lock holds it together."""

    def __init__(self, script: Script, settings: ServerSettings) -> None:
        self.settings = settings
        self.requests: list[RecordedRequest] = []
        self.stopping = threading.Event()
        self._script = list(script)
        self._position = 0
        self._served = 0
        self._loading = settings.loading
        self._slot: list[str] = []
        self._changed = threading.Condition()

    @property
    def chats(self) -> list[RecordedRequest]:
        return [request for request in self.requests if request.is_chat]

    def wait_for_chats(self, count: int, timeout_seconds: float) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.chats) >= count, timeout_seconds):
                raise TimeoutError(f"{len(self.chats)} of {count} chat requests arrived")

    def wait_for_path(self, path: str, count: int, timeout_seconds: float) -> None:
        def seen() -> int:
            return sum(request.path == path for request in self.requests)

        with self._changed:
            if not self._changed.wait_for(lambda: seen() >= count, timeout_seconds):
                raise TimeoutError(f"{seen()} of {count} requests for {path} arrived")

    def is_dead(self, path: str) -> bool:
        """Whether a request is never answered. The chat that the server dies at still is."""
        arrived, dies_at = len(self.chats), self.settings.dies_at
        return 0 < dies_at <= arrived and not (path in CHAT_PATHS and arrived == dies_at)

    def note_request(self, request: RecordedRequest) -> None:
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()

    def note_end(self, request: RecordedRequest) -> None:
        request.ended.set()
        if self.settings.record:
            line = {name: getattr(request, name) for name in RecordedRequest.__slots__ if name != "ended"}
            line.pop("headers")
            with self._changed, self.settings.record.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    def is_loading(self, *, health_check: bool) -> bool:
        with self._changed:
            loading = self._loading > 0
            if health_check and loading:
                self._loading -= 1
            return loading

    def next_step(self, body: Mapping[str, Any]) -> Step | None:
        """The step for this request, None at the end of the script."""
        with self._changed:
            if self._position >= len(self._script):
                return None
            raw = self._script[self._position]
            step = parse_step(raw(body) if callable(raw) else raw)
            self._served += 1
            if step.times and self._served >= step.times:
                self._position, self._served = self._position + 1, 0
            return step

    def take_slot(self, body: Mapping[str, Any], prompt: list[str]) -> int:
        """Puts the prompt into the slot; returns how many of its tokens were there. One is always new."""
        with self._changed:
            kept = chat.common_prefix(self._slot, prompt) if body.get("cache_prompt", True) else 0
            self._slot = prompt
            return min(kept, len(prompt) - 1)

    def fill_slot(self, prompt: list[str], reply: str) -> None:
        with self._changed:
            self._slot = prompt + chat.tokenize(reply)
