"""Tries a llama-server that was just built: what it says about itself, and whether it can compute.

The model is one of random numbers, so this needs no download and says nothing about quality or speed; it
shows that the program loads a quantised model, computes with it on its backend, and answers a request.
"""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent.core.errors import ServerError, UsageError
from agent.server.caps import Capabilities, read_capabilities, shielded
from agent.server.loopback import HOST, free_port, request_json, status_of
from agent.server.program import end_with_children
from agent.server.sources import CancelledError
from agent.server.tiny_model import write_tiny_model

_PROMPT = "abababababababab"
"""Longer than a few tokens, because matrices have other code for a batch than for one token."""

_HINT = "build it again with --force; with a GPU, a build with --cpu shows whether the GPU is the cause"
_CRASH_HINT = (
    "it computes with instructions that this machine does not run, or its source or compiler has a fault; "
    "try another version or compiler (CC, CXX), or --cpu in place of a GPU"
)
_CRASHED = "crashed"
_CRASHES = ("SIGSEGV", "SIGILL", "SIGBUS", "SIGFPE", "SIGABRT")
_TOKENS = 4
_POLL_SECONDS = 0.1
_READY_SECONDS = 120.0
"""The first use of a GPU can be slow."""
_REQUEST_SECONDS = 60.0
_STOP_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What a program is, and what was tried."""

    capabilities: Capabilities
    verified: str


def try_out(
    program: Path,
    environment: Mapping[str, str],
    *,
    gpu: bool,
    cancelled: Callable[[], bool] = lambda: False,
) -> Trial:
    """Asks for `--version` and `--help`, then starts it once and requests a few tokens.

    Args:
        gpu: put the model on the graphics processor, so that its code is used too.

    Raises:
        ServerError: it cannot be run, is no llama-server, or does not answer.
        CancelledError: `cancelled` said so.
    """
    try:
        capabilities = read_capabilities(program, environment=environment)
    except UsageError as error:
        raise ServerError(f"the built program does not work: {error.message}", error.hint) from error
    with tempfile.TemporaryDirectory(prefix="agent-trial-") as name:
        folder = Path(name)
        write_tiny_model(folder / "random.gguf")
        port = free_port()
        command = [
            str(program), "-m", str(folder / "random.gguf"), "-c", "128", "-np", "1", "-t", "1",
            "--host", HOST, "--port", str(port), "-ngl", "99" if gpu else "0",
        ]  # fmt: skip
        with (folder / "log").open("wb") as log:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=shielded(environment) | {"XDG_CONFIG_HOME": str(folder)},
                start_new_session=True,
            )
            try:
                _wait_until_ready(child, port, folder / "log", time.monotonic() + _READY_SECONDS, cancelled)
                tokens = _request(child, port, folder / "log")
            finally:
                end_with_children(child, _STOP_SECONDS)
    where = "the GPU" if gpu else "the processor"
    return Trial(
        capabilities=capabilities,
        verified=f"--version, --help, and {tokens} tokens from a model of random numbers on {where}",
    )


def _wait_until_ready(
    child: "subprocess.Popen[bytes]", port: int, log: Path, limit: float, cancelled: Callable[[], bool]
) -> None:
    while status_of(port, "/health") != 200:
        if cancelled():
            raise CancelledError
        if child.poll() is not None:
            raise _failure(f"the built server {_end_of(child.returncode)} instead of starting", log)
        if time.monotonic() > limit:
            raise _failure("the built server did not become ready in time", log)
        time.sleep(_POLL_SECONDS)


def _request(child: "subprocess.Popen[bytes]", port: int, log: Path) -> int:
    """How many tokens came back."""
    body = {"prompt": _PROMPT, "n_predict": _TOKENS, "ignore_eos": True, "temperature": 0}
    try:
        status, answer = request_json(port, "POST", "/completion", "none", body, _REQUEST_SECONDS)
    except OSError as error:
        # The connection can break a moment before the process is gone.
        with suppress(subprocess.TimeoutExpired):
            ended = _end_of(child.wait(_STOP_SECONDS))
            raise _failure(f"the built server {ended} at its first request", log) from error
        raise _failure(f"the built server broke off its first answer ({error})", log) from error
    tokens = 0
    with suppress(KeyError, TypeError, ValueError):
        tokens = int(answer["timings"]["predicted_n"])
    if status != 200 or tokens < 1:
        raise _failure(f"the built server answers its first request with status {status} and no tokens", log)
    return tokens


def _end_of(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return f"{_CRASHED} ({name})" if name in _CRASHES else f"was ended by {name}"


def _failure(what: str, log: Path) -> ServerError:
    lines: Sequence[str] = ()
    with suppress(OSError):
        lines = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    telling = [line for line in lines if " E " in line or "error" in line.lower() or "GGML_ASSERT" in line]
    crashed = _CRASHED in what
    # The last line before a crash is about something else and would only mislead.
    last = (telling or ([] if crashed else lines) or [""])[-1].strip()[:300]
    return ServerError(f"{what}: {last}" if last else what, _CRASH_HINT if crashed else _HINT)


def runs_from(folder: Path) -> list[int]:
    """The process ids of programs that run from this folder."""
    import psutil

    inside = str(folder.resolve()) + os.sep
    everything = psutil.process_iter(["exe"])
    return [process.pid for process in everything if (process.info["exe"] or "").startswith(inside)]
