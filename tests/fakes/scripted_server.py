"""A model server without a model: it speaks llama-server's JSON and answers from a script.

In a test, use the fixture `scripted_server`. For another process:

    python -m tests.fakes.scripted_server script.json --port 0 --record requests.jsonl
"""

import argparse
import contextlib
import signal
import threading
from pathlib import Path

from tests.fakes.handler import HttpServer
from tests.fakes.script import Script, load_script
from tests.fakes.state import RecordedRequest, ServerSettings, ServerState
from tests.patience import PATIENCE_SECONDS


class ScriptedServer:
    """Serves on the loopback address until `close()`.

    A script that has run out answers with a 500 that says so. Port 0 takes a free one.
    """

    def __init__(self, script: Script, settings: ServerSettings, port: int = 0) -> None:
        self._state = ServerState(script, settings)
        self._http = HttpServer(("127.0.0.1", port), self._state)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), name="scripted-server")
        self._thread.start()

    @property
    def port(self) -> int:
        return self._http.server_address[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def requests(self) -> list[RecordedRequest]:
        return self._state.requests

    @property
    def chats(self) -> list[RecordedRequest]:
        """The chat requests so far, without health checks and the like."""
        return self._state.chats

    def wait_for_chats(self, count: int, timeout_seconds: float = PATIENCE_SECONDS) -> None:
        """Blocks until that many chat requests have arrived; raises TimeoutError."""
        self._state.wait_for_chats(count, timeout_seconds)

    def wait_for_path(self, path: str, count: int, timeout_seconds: float = PATIENCE_SECONDS) -> None:
        """Blocks until that many requests for `path` have arrived; raises TimeoutError."""
        self._state.wait_for_path(path, count, timeout_seconds)

    def wait(self) -> None:
        """Blocks until the server is closed."""
        self._thread.join()

    def close(self) -> None:
        """Breaks what is still open and waits for every thread."""
        if self._thread.is_alive():
            self._http.stop()
            self._thread.join()


def main() -> None:
    """Serves a script from a JSON file until it is interrupted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("script", type=Path)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--api-key", default="")
    parser.add_argument("--n-ctx", type=int, default=32_768)
    parser.add_argument("--strict", action="store_true", help="refuse a history with malformed arguments")
    parser.add_argument("--record", type=Path, help="append each request to this file, as JSON lines")
    options = parser.parse_args()
    settings = ServerSettings(
        api_key=options.api_key, n_ctx=options.n_ctx, strict=options.strict, record=options.record
    )
    server = ScriptedServer(load_script(options.script), settings, options.port)
    # Asked to end, it first finishes the record of what it has answered.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        print(f"listening on {server.url}", flush=True)
        server.wait()
    server.close()


if __name__ == "__main__":
    main()
