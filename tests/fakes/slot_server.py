"""A model server of which only the slots are there: what they hold, saving it to files and reading it back.

A token is a character. What it cannot read it refuses.
"""

import itertools
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE_SECONDS

_HEADER = b"STATE"


@dataclass(slots=True)
class SlotWorld:
    """What the server is. `prompts` are the contents of its slots, `tasks` the numbers of their last tasks.

    `refuses` are actions answered with a 400. With `gate` set to an event, reading a prompt waits for it.
    """

    folder: Path
    prompts: list[str]
    tasks: list[int]
    busy: set[int] = field(default_factory=set)
    build: str = "b1-test"
    template: str = "{{ messages }}"
    context: int = 4096
    refuses: set[str] = field(default_factory=set)
    gate: threading.Event | None = None
    seconds_per_token: float = 0.05
    writes_less: bool = False
    requests: list[tuple[str, Any]] = field(default_factory=list)
    came: threading.Condition = field(default_factory=threading.Condition)
    left: threading.Event = field(default_factory=threading.Event)

    def asked(self, path: str) -> list[Any]:
        return [body for asked, body in self.requests if asked == path]

    def wait_for(self, path: str) -> None:
        with self.came:
            assert self.came.wait_for(lambda: self.asked(path), PATIENCE_SECONDS)


class SlotServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, folder: Path, slots: int = 1) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.world = SlotWorld(folder, [""] * slots, [-1] * slots)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,))
        self._thread.start()

    @property
    def port(self) -> int:
        return self.server_address[1]

    def close(self) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: SlotServer

    def log_message(self, *_: Any) -> None:
        return

    def do_GET(self) -> None:
        self._note(None)
        world = self.server.world
        if self.path == "/props":
            self._answer(
                200,
                {
                    "default_generation_settings": {"n_ctx": world.context},
                    "total_slots": len(world.prompts),
                    "build_info": world.build,
                    "chat_template": world.template,
                },
            )
        elif self.path == "/slots":
            self._answer(200, [self._slot(number) for number in range(len(world.prompts))])
        else:
            self._answer(404, {})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._note(body)
        path, _, action = self.path.partition("?action=")
        if path == "/completion":
            self._read(body["prompt"])
        elif path == "/apply-template":
            texts = (f"<{one['role']}>{one['content']}" for one in body["messages"])
            self._answer(200, {"prompt": "".join(texts)})
        elif action in self.server.world.refuses:
            self._answer(400, {"error": {"message": "Unable to restore slot"}})
        elif action == "save":
            self._save(int(path.rpartition("/")[2]), body["filename"])
        elif action == "restore":
            self._restore(int(path.rpartition("/")[2]), body["filename"])
        else:
            self._answer(501, {})

    def _note(self, body: Any) -> None:
        with self.server.world.came:
            self.server.world.requests.append((self.path, body))
            self.server.world.came.notify_all()

    def _slot(self, number: int) -> dict[str, Any]:
        world = self.server.world
        slot: dict[str, Any] = {"id": number, "is_processing": number in world.busy}
        if world.tasks[number] >= 0:
            slot |= {"id_task": world.tasks[number], "n_prompt_tokens": len(world.prompts[number])}
        return slot

    def _read(self, prompt: str) -> None:
        world = self.server.world
        self.send_response(200)
        self.end_headers()
        progress = {"total": len(prompt), "cache": 0, "processed": 1}
        self._event({"prompt_progress": progress, "stop": False})
        if world.gate is not None:
            world.gate.wait(30)
        number = min(range(len(world.prompts)), key=lambda one: world.tasks[one])
        held = world.prompts[number]
        pairs = zip(held, prompt, strict=False)
        cached = len([*itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)])
        world.prompts[number], world.tasks[number] = prompt, max(world.tasks) + 1
        evaluated = max(1, len(prompt) - cached)
        timings = {
            "cache_n": len(prompt) - evaluated,
            "prompt_n": evaluated,
            "prompt_ms": 1000 * world.seconds_per_token * evaluated,
        }
        try:
            self._event({"stop": True, "id_slot": number, "timings": timings})
        except OSError:
            world.left.set()

    def _event(self, said: dict[str, Any]) -> None:
        self.wfile.write(f"data: {json.dumps(said)}\n\n".encode())
        self.wfile.flush()

    def _save(self, number: int, filename: str) -> None:
        prompt = self.server.world.prompts[number]
        raw = _HEADER + prompt.encode()
        path = self.server.world.folder / filename
        path.write_bytes(raw[:-1] if self.server.world.writes_less else raw)
        self._answer(200, {"id_slot": number, "n_saved": len(prompt), "n_written": len(raw)})

    def _restore(self, number: int, filename: str) -> None:
        raw = (self.server.world.folder / filename).read_bytes()
        if not raw.startswith(_HEADER):
            self._answer(400, {"error": {"message": "invalid slot save file"}})
            return
        prompt = raw.removeprefix(_HEADER).decode()
        self.server.world.prompts[number] = prompt
        self.server.world.tasks[number] = max(0, *self.server.world.tasks)
        self._answer(200, {"id_slot": number, "n_restored": len(prompt), "n_read": len(raw)})

    def _answer(self, status: int, content: Any) -> None:
        raw = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)
