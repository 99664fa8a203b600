#!/usr/bin/env python3
"""Stands in for the `llama-server` executable: its flags, its log, its routes, and its ways to fail.

Written after upstream's build 11434 and, by their sources, its forks. It loads nothing and knows nothing:
replies, speeds and faults come from `FAKE_LLAMA_*` variables, see `tests.fakes.llama_switches`. Tests get
one by `tests.fakes.llama_binary`. Only the standard library, because it is started very often.
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, NoReturn

_LOOK_SECONDS = 0.01


def main(words: list[str]) -> int:
    from tests.fakes.llama_flags import ArgumentMistakeError, Flags
    from tests.fakes.llama_switches import Switches

    switches = Switches.read(os.environ)
    flags = Flags(switches.dialect)
    try:
        given = flags.parse(words, os.environ)
    except ArgumentMistakeError as mistake:
        sys.stderr.write(str(mistake))
        return 1
    if "--version" in given:
        compiler = f"built with GNU 13.2.0 for {sys.platform}"
        print(f"version: {switches.version}\n{compiler}", file=sys.stderr)
        return 0
    if "--help" in given:
        sys.stdout.write(flags.help())
        return 0
    Server(switches, given, words).run()
    return 0


class Server:
    """One life of the program, from the first line of its log to the last."""

    def __init__(self, switches: Any, given: dict[str, str], words: list[str]) -> None:
        from tests.fakes.llama_state import State

        self._begin = time.monotonic()
        start = switches.record_start(words, os.environ, os.getpid())
        self.state = State(switches, given, self.die, self.log)
        faulty = not switches.faulty_starts or start <= switches.faulty_starts
        self.state.faulty = faulty and (self.state.speculative or not switches.only_when_drafting)
        self._switches = switches
        self._given = given
        self._stop = threading.Event()

    def run(self) -> None:
        if self._switches.ignore_sigterm:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self.log("I", "srv  llama_server: initializing ...")
        http = self._bind()
        if http is None:
            self.die(1)
        self._load()
        self.log("I", "srv  llama_server: model loaded")
        self.state.ready = not self._switches.never_ready
        for number in () if self._switches.ignore_sigterm else (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._asked_to_stop)
        self._say_where(http.server_address)
        # With a limit, so that the handler of a signal gets its turn on every system.
        while not self._stop.wait(1.0):
            pass
        self.log("I", "srv    operator(): operator(): cleaning up before exit...")
        # A request that is not streamed holds the real server until its client is gone.
        while self.state.waiting_requests:
            time.sleep(_LOOK_SECONDS)
        self.die(0)

    def log(self, level: str, text: str) -> None:
        micros = int((time.monotonic() - self._begin) * 1e6)
        minutes, rest = divmod(micros, 60_000_000)
        stamp = f"{minutes}.{rest // 1_000_000:02d}.{rest // 1000 % 1000:03d}.{rest % 1000:03d}"
        sys.stderr.write(f"{stamp} {level} {text}\n")
        sys.stderr.flush()

    def die(self, exit_code: int, exit_signal: int = 0) -> NoReturn:
        """Ends at once, whatever other threads are doing."""
        sys.stderr.flush()
        if exit_signal:
            # To this very thread: another one would leave time to end with the code below.
            signal.raise_signal(exit_signal)
        os._exit(exit_code)

    def _bind(self) -> Any:
        from tests.fakes.llama_http import LlamaHttp

        host, port = self._given.get("--host", "127.0.0.1"), int(self._given.get("--port", "8080"))
        try:
            if self.state.faulty and self._switches.port_busy:
                raise OSError("told so")
            http = LlamaHttp((host, port % 65536), self.state)
        except OSError:
            text = f"couldn't bind HTTP server socket, hostname: {host}, port: {port}"
            self.log("E", f"srv         start: {text}")
            self.log("E", "srv  llama_server: exiting due to HTTP server error")
            return None
        threading.Thread(target=http.serve_forever, daemon=True).start()
        return http

    def _load(self) -> None:
        state, switches = self.state, self._switches
        if state.router:
            self.log(
                "W",
                "srv  llama_server: security: router mode enabled - do not expose to untrusted environments",
            )
            self.log("I", "srv  llama_server: starting server in router mode.")
            return
        self.log("I", f"srv    load_model: loading model '{state.model}'")
        time.sleep(switches.load_seconds)
        while switches.load_until and not Path(switches.load_until).exists():
            time.sleep(_LOOK_SECONDS)
        if state.faulty and (switches.die_loading is not None):
            sys.stderr.write(switches.die_loading + "\n" if switches.die_loading else "")
            self.die(switches.exit_code, switches.exit_signal)
        if not switches.any_model:
            self._look_at(state.model, "load_model: failed to load model")
        if state.draft:
            self.log("I", f"common_speculative_init_result: loading draft model '{state.draft}'")
            if not switches.any_model:
                self._look_at(state.draft, "load_model: failed to load draft model")
        self._tell_slots()

    def _tell_slots(self) -> None:
        state = self.state
        unified = "true" if state.unified else "false"
        text = f"n_slots = {state.slots}, n_ctx_slot = {state.context}, kv_unified = '{unified}'"
        self.log("I", f"srv    load_model: initializing, {text}")
        if not state.speculative:
            return
        name = f"common_speculative_impl_{state.kinds[0].replace('-', '_')}"
        for kind in state.kinds:
            self.log("I", f"{name}: adding speculative implementation '{kind}'")
        self.log("I", f"{name}: - n_max={state.asked_n_max}, n_min=0, p_min=0.00")
        if "dflash" in state.kinds[0] and state.asked_n_max > state.n_max:
            asked = f"requested draft size (n_max={state.asked_n_max}, n_min=0)"
            block = self._switches.block_size
            self.log(
                "W", f"{name}: {asked} exceeds the trained block size {block} -- clamping to {block - 1}"
            )

    def _look_at(self, path: str, failure: str) -> None:
        try:
            with Path(path).open("rb") as file:
                magic = file.read(4)
        except OSError as error:
            self.log("E", f"gguf_init_from_file: failed to open GGUF file '{path}' ({error.strerror})")
        else:
            if magic == b"GGUF":
                return
            shown = magic.decode("ascii", "replace")
            self.log("E", f"gguf_init_from_reader: invalid magic characters: '{shown}', expected 'GGUF'")
        self.log("E", "llama_model_load_from_file_impl: failed to load model")
        self.log("E", f"srv    {failure}, '{path}'")
        self.log("E", "srv  llama_server: exiting due to model loading error")
        self.die(1)

    def _say_where(self, address: Any) -> None:
        where = f"http://{self._given.get('--host', '127.0.0.1')}:{address[1]}"
        if self._switches.dialect in ("bee-0.3", "ik"):
            self.log("I", f"main: server is listening on {where} - starting the main loop")
            self.log("I", "main: starting the main loop...")
        else:
            self.log("I", f"srv  llama_server: listening on {where}")

    def _asked_to_stop(self, number: int, frame: object) -> None:
        if self._stop.is_set():
            sys.stderr.write("Received second interrupt, terminating immediately.\n")
            self.die(1)
        self._stop.set()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    sys.exit(main(sys.argv[1:]))
