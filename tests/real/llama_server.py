"""The real llama-server for the tests of this folder, run directly: no profile, no supervisor."""

import os
import re
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.resources import servers_folder
from agent.server.binaries import installed
from agent.server.caps import shielded
from agent.server.fit import ServerSettings
from agent.server.loopback import request_json, status_of
from tests.real import tiny_pair

VARIABLE = "AGENT_TEST_LLAMA_SERVER"
_LIMIT_SECONDS = 90.0
_ANSWER_SECONDS = 90.0
_LISTENING = re.compile(r"listening on http://127\.0\.0\.1:(\d+)\s")
_TOKENS = 16
_POLL_SECONDS = 0.05


def real_binary() -> Path:
    """The installed llama-server of upstream, or the one that a variable names."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    found = [one.path for one in installed(servers_folder()) if one.dialect == "llama.cpp"]
    if not found:
        raise FileNotFoundError(
            f"no llama-server to test with: `agent server install llama.cpp`, or name one in {VARIABLE}"
        )
    return found[0]


@dataclass(frozen=True, slots=True)
class Ended:
    """What a server printed, and how it ended."""

    log: str
    status: int


def run_until_it_fails(
    words: Sequence[str], folder: Path, variables: Mapping[str, str] | None = None, *, request: bool = False
) -> Ended:
    """Runs a server that is expected to fail: while it starts, or at its first request for tokens."""
    environment = shielded(os.environ) | {"XDG_CONFIG_HOME": str(folder)} | dict(variables or {})
    own = ["-t", "1"] if "--port" in words else ["-t", "1", "--port", "0"]
    command = [str(real_binary()), *own, *words]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment)
    watchdog = threading.Timer(_LIMIT_SECONDS, process.kill)
    watchdog.start()
    log = ""
    try:
        assert process.stderr is not None
        for raw in process.stderr:
            line = raw.decode("utf-8", "replace")
            log += line
            if "listening on http://" in line:
                if request:
                    threading.Thread(target=_ask, args=(line,)).start()
                else:
                    process.kill()
        return Ended(log, process.wait())
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()


def _ask(line: str) -> None:
    port = int(line.rpartition(":")[2])
    try:
        request_json(
            port, "POST", "/completion", "", {"prompt": "a b", "n_predict": _TOKENS}, _ANSWER_SECONDS
        )
    except OSError:
        return  # that it goes away is what is waited for


@dataclass(frozen=True, slots=True)
class Up:
    """A server that serves: what it has printed so far, and its port."""

    log_file: Path
    port: int

    @property
    def log(self) -> str:
        return self.log_file.read_text("utf-8", "replace")

    def get(self, path: str) -> Any:
        return request_json(self.port, "GET", path, "", None, _ANSWER_SECONDS)[1]

    def get_text(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=_ANSWER_SECONDS) as answer:
            return answer.read().decode("utf-8")

    def complete(self, tokens: int = _TOKENS, **body: Any) -> Any:
        """The answer to a request for so many tokens."""
        whole = {"prompt": "one two three", "n_predict": tokens, "cache_prompt": False, "ignore_eos": True}
        return request_json(self.port, "POST", "/completion", "", whole | body, _ANSWER_SECONDS)[1]


def _up(log_file: Path) -> Up | None:
    """The server, once it has said which port it got."""
    told = _LISTENING.search(log_file.read_text("utf-8", "replace"))
    return Up(log_file, int(told[1])) if told else None


@contextmanager
def serving(words: Sequence[str], folder: Path) -> Iterator[Up]:
    """A server on one thread, which is stopped at the end."""
    environment = shielded(os.environ) | {"XDG_CONFIG_HOME": str(folder)}
    command = [str(real_binary()), "-t", "1", "--port", "0", *words]
    log_file = folder / "server.log"
    with log_file.open("wb") as log:
        process = subprocess.Popen(command, stderr=log, stdout=subprocess.DEVNULL, env=environment)
    try:
        deadline = time.monotonic() + _LIMIT_SECONDS
        while (up := _up(log_file)) is None or status_of(up.port, "/health") != 200:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"it does not serve: {log_file.read_text('utf-8', 'replace')[-2000:]}")
            time.sleep(_POLL_SECONDS)
        yield up
    finally:
        process.terminate()
        try:
            process.wait(_LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def write_files(folder: Path) -> dict[str, str]:
    """Model files that fit, and that do not, by the names that the cases use."""
    pair = tiny_pair.write_tiny_pair(folder)
    paths = {
        "target": pair.target,
        "draft": pair.draft,
        "wide": tiny_pair.write_drafter(folder / "wide.gguf", width=96),
        "far": tiny_pair.write_drafter(folder / "far.gguf", target_layers=(1, 9)),
        "no_layers": tiny_pair.write_drafter(folder / "no_layers.gguf", target_layers=None),
        "old_layout": tiny_pair.write_drafter(folder / "old_layout.gguf", architecture="dflash-draft"),
        "foreign": tiny_pair.write_target(folder / "foreign.gguf", more_tokens=200),
        "gemma3": tiny_pair.write_target(folder / "gemma3.gguf", architecture="gemma3"),
        "unknown": tiny_pair.write_target(folder / "unknown.gguf", architecture="hopper"),
        "half": folder / "half.gguf",
        "garbage": folder / "garbage.gguf",
    }
    paths["half"].write_bytes(pair.target.read_bytes()[:300_000])
    paths["garbage"].write_text("garbage, no model", "utf-8")
    return {name: str(path) for name, path in paths.items()}


@contextmanager
def taken_port() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield str(listening.getsockname()[1])


def memory_words(model: Path, draft: Path | None, settings: ServerSettings) -> list[str]:
    """The command line of a server with these settings, which tells what it allocates and no more."""
    kinds = {"draft": "draft-simple", "dflash": "draft-dflash", "mtp": "draft-mtp"}
    words = ["-m", str(model), "-c", str(settings.context * settings.slots), "-np", str(settings.slots)]
    words += ["-b", str(settings.batch), "-ub", str(settings.ubatch), "--no-warmup", "-fit", "off"]
    words += ["-ctk", settings.kv_type_k, "-ctv", settings.kv_type_v, "--cache-ram", "0", "-lv", "4"]
    words += ["-fa", "auto" if settings.flash_attention else "off"]
    words += ["--kv-unified"] if settings.unified_kv else []
    words += ["--swa-full"] if settings.full_window_cache else []
    if settings.speculation in kinds:
        words += ["--spec-type", kinds[settings.speculation], "--spec-draft-n-max", str(settings.n_max)]
        words += ["-ctkd", settings.draft_kv_type_k, "-ctvd", settings.draft_kv_type_v]
        words += ["-md", str(draft)] if draft else []
    return words
