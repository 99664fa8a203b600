"""The fake llama-server does what the real one does, as far as anybody asks."""

import http.client
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.server.caps import DIALECTS, built_in, read_capabilities
from agent.server.profile import DialectName
from tests.fakes.llama_binary import FakeBinary, make_llama_binary, write_model

HEALTHY = 200
Start = Callable[..., "Running"]


class Running:
    """A started fake and what it said until it was up."""

    def __init__(self, process: "subprocess.Popen[bytes]", ready_words: tuple[bytes, ...]) -> None:
        self.process = process
        self.log = ""
        self.port = 0
        assert process.stderr is not None
        for line in process.stderr:
            self.log += line.decode("utf-8")
            if any(words in line for words in ready_words):
                break
        if "http://" in self.log:
            self.port = int(self.log.rpartition("http://")[2].partition(":")[2].split()[0])

    def ask(self, path: str, body: Any = None, key: str = "") -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        raw = None if body is None else json.dumps(body)
        connection.request("GET" if body is None else "POST", path, raw, headers)
        response = connection.getresponse()
        text = response.read().decode("utf-8")
        connection.close()
        return response.status, json.loads(text) if text.startswith(("{", "[")) else text


@pytest.fixture
def binary(tmp_path: Path) -> FakeBinary:
    write_model(tmp_path / "target.gguf")
    write_model(tmp_path / "draft.gguf")
    return make_llama_binary(tmp_path / "bin")


@pytest.fixture
def start(binary: FakeBinary, tmp_path: Path) -> Iterator[Start]:
    """Starts the fake with the tiny target and more words, and reads its log until it is up or gone."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(*words: str, until: tuple[bytes, ...] = (b"listening on",)) -> Running:
        command = [str(binary.path), "-m", str(tmp_path / "target.gguf"), "--port", "0", *words]
        process = subprocess.Popen(command, stderr=subprocess.PIPE)
        started.append(process)
        return Running(process, until)

    yield begin
    for process in started:
        process.kill()
        process.communicate()


DFLASH = ("--spec-type", "draft-dflash", "--spec-draft-n-max", "15")


def draft(folder: Path) -> tuple[str, ...]:
    return (*DFLASH, "-md", str(folder / "draft.gguf"))


def stopped(running: Running) -> int:
    return running.process.wait()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_help_of_each_family_is_read_as_that_family(dialect: DialectName, tmp_path: Path):
    found = read_capabilities(make_llama_binary(tmp_path, dialect).path)
    known = built_in(dialect)
    assert found.dialect == dialect
    assert found.valued == known.valued
    assert found.switches - {"-h", "--help", "--usage", "--version"} == known.switches
    assert {flag: found.values[flag] for flag in known.values} == known.values
    assert found.stage_keys == known.stage_keys


@pytest.mark.parametrize(
    ("dialect", "words", "text"),
    [
        ("llama.cpp", ["--mlock"], "error: invalid argument: --mlock\n"),
        ("llama.cpp", ["--spec-type", "dflash"], 'argument "--spec-type": unknown speculative type: dflash'),
        ("llama.cpp", ["--draft-max", "4"], "the argument has been removed. use --spec-draft-n-max"),
        ("llama.cpp", ["-ctk", "turbo3"], 'argument "-ctk": Unsupported cache type: turbo3'),
        ("llama.cpp", ["-c", "many"], 'argument "-c": stoi'),
        ("llama.cpp", ["-c"], 'argument "-c": expected value for argument'),
        ("llama.cpp", ["--slot-save-path", "/nowhere"], "not a directory: /nowhere"),
        ("bee-0.3", ["--spec-type", "draft-dflash"], "unknown speculative decoding type without draft model"),
        ("ik", ["--spec-type", "draft-mtp"], "unknown speculative stage type: draft-mtp"),
        ("ik", ["--no-host"], "error: unknown argument: --no-host"),
        ("ik", ["--draft-max", "4"], "legacy speculative option '--draft-max' is disabled; use"),
    ],
)
def test_bad_arguments_are_refused_in_the_words_of_the_family(
    dialect: DialectName, words: list[str], text: str, tmp_path: Path
):
    path = make_llama_binary(tmp_path, dialect).path
    done = subprocess.run([path, *words], capture_output=True, check=False)
    assert done.returncode == 1
    assert text in done.stderr.decode("utf-8")
    assert done.stdout == b""


def test_stray_variable_is_refused_by_its_name(binary: FakeBinary):
    environment = {**os.environ, "LLAMA_ARG_SPEC_TYPE": "dflash"}
    done = subprocess.run([binary.path], env=environment, capture_output=True, check=False)
    assert b'error while handling environment variable "LLAMA_ARG_SPEC_TYPE"' in done.stderr


def test_missing_model_is_told_as_by_the_real_one(binary: FakeBinary, start: Start):
    words = ("-m", "/nowhere.gguf")
    running = start(*words, until=(b"exiting",))
    assert "failed to open GGUF file '/nowhere.gguf' (No such file or directory)" in running.log
    assert stopped(running) == 1


def test_answers_a_chat_with_figures(start: Start):
    running = start("-c", "1024", "-np", "1")
    assert running.ask("/health") == (HEALTHY, {"status": "ok"})
    body = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 5}
    status, answer = running.ask("/v1/chat/completions", body)
    assert status == HEALTHY
    assert answer["usage"]["completion_tokens"] == 5
    assert answer["choices"][0]["finish_reason"] == "length"
    assert "draft_n" not in answer["timings"]


def test_stream_ends_with_figures_and_done(start: Start, tmp_path: Path):
    running = start("-c", "1024", "-np", "1", *draft(tmp_path))
    body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 12, "stream": True}
    _, text = running.ask("/v1/chat/completions", body)
    events = [line.removeprefix("data: ") for line in text.splitlines() if line]
    assert events[-1] == "[DONE]"
    timings = json.loads(events[-2])["timings"]
    assert timings["draft_n"] > timings["draft_n_accepted"] > 0
    assert timings["predicted_per_second"] == 130.0


def test_speculation_is_told_in_log_and_slots(start: Start, tmp_path: Path):
    running = start("-np", "1", "-c", "512", *draft(tmp_path))
    assert "adding speculative implementation 'draft-dflash'" in running.log
    assert running.ask("/slots")[1][0]["speculative"] is True


def test_dflash_without_a_draft_is_silently_nothing(start: Start):
    running = start("-np", "1", *DFLASH)
    assert "speculative" not in running.log
    assert running.ask("/slots")[1][0]["speculative"] is False


def test_longer_drafts_than_blocks_are_clamped(binary: FakeBinary, start: Start, tmp_path: Path):
    binary.tell(block_size=8)
    assert "exceeds the trained block size 8 -- clamping to 7" in start(*draft(tmp_path)).log


def test_only_the_right_key_opens_but_health_is_open(start: Start, tmp_path: Path):
    (tmp_path / "keys").write_text("# ours\nsesame\n", "utf-8")
    running = start("--api-key-file", str(tmp_path / "keys"))
    assert running.ask("/health")[0] == HEALTHY
    assert running.ask("/props")[0] == 401
    assert running.ask("/props", key="sesame")[0] == HEALTHY


def test_slots_share_or_divide_the_context(start: Start):
    divided = start("-c", "4096", "-np", "2").ask("/props")[1]
    shared = start("-c", "4096", "-np", "2", "--kv-unified").ask("/props")[1]
    assert divided["default_generation_settings"]["n_ctx"] == 2048
    assert shared["default_generation_settings"]["n_ctx"] == 4096


def test_too_long_a_prompt_is_refused_with_both_numbers(start: Start):
    status, answer = start("-c", "256", "-np", "1").ask("/completion", {"prompt": "x" * 4000})
    assert status == 400
    assert answer["error"]["type"] == "exceed_context_size_error"
    assert answer["error"]["n_ctx"] == 256


def test_is_unavailable_while_it_loads_and_dies_of_sigterm_then(
    binary: FakeBinary, start: Start, tmp_path: Path
):
    binary.tell(load_until=tmp_path / "go")
    port = free_port()
    running = start("--port", str(port), until=(b"loading model",))
    running.port = port
    assert running.ask("/health")[0] == 503
    assert running.ask("/props")[1]["error"]["message"] == "Loading model"
    running.process.terminate()
    assert stopped(running) == -signal.SIGTERM


def test_ends_in_order_when_asked_to(start: Start):
    running = start()
    running.process.terminate()
    assert stopped(running) == 0


def test_ignores_sigterm_if_told(binary: FakeBinary, start: Start):
    binary.tell(ignore_sigterm=True)
    running = start()
    running.process.terminate()
    assert running.ask("/health")[0] == HEALTHY


def test_port_in_use_is_told_before_the_model(start: Start):
    first = start()
    second = start("--port", str(first.port), until=(b"exiting",))
    assert f"couldn't bind HTTP server socket, hostname: 127.0.0.1, port: {first.port}" in second.log
    assert "loading model" not in second.log


def test_dies_while_loading_with_the_given_words(binary: FakeBinary, start: Start):
    binary.tell(die_loading="E unknown model architecture: 'hopper'", exit_code=3)
    running = start(until=(b"hopper",))
    assert stopped(running) == 3


def test_aborts_at_the_first_request_only_when_it_drafts(binary: FakeBinary, start: Start, tmp_path: Path):
    binary.tell(abort_at_request=True)
    plain = start("-np", "1")
    assert plain.ask("/completion", {"prompt": "x", "n_predict": 8})[0] == HEALTHY
    drafting = start("-np", "1", *draft(tmp_path))
    assert drafting.ask("/health")[0] == HEALTHY
    with pytest.raises(ConnectionError):
        drafting.ask("/completion", {"prompt": "x", "n_predict": 8})
    assert stopped(drafting) == -signal.SIGABRT


def test_dies_in_the_middle_of_a_stream_and_works_at_the_next_start(binary: FakeBinary, start: Start):
    binary.tell(die_in_stream=2, faulty_starts=1)
    body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 6, "stream": True}
    first = start()
    _, text = first.ask("/v1/chat/completions", body)
    assert text.count("data: ") == 3
    assert stopped(first) == -signal.SIGKILL
    _, text = start().ask("/v1/chat/completions", body)
    assert "[DONE]" in text
    assert len(binary.starts()) == 2


def test_without_a_model_it_is_a_router(binary: FakeBinary):
    process = subprocess.Popen([binary.path, "--port", "0"], stderr=subprocess.PIPE)
    try:
        running = Running(process, (b"listening on",))
        assert running.ask("/health")[0] == HEALTHY
        assert running.ask("/props")[1]["role"] == "router"
    finally:
        process.kill()
        process.communicate()


def test_starts_and_requests_can_be_looked_at_later(binary: FakeBinary, start: Start):
    running = start("-np", "1")
    running.ask("/completion", {"prompt": "look", "n_predict": 1})
    assert binary.starts()[0]["argv"][-2:] == ["-np", "1"]
    assert binary.requests() == [{"path": "/completion", "body": {"prompt": "look", "n_predict": 1}}]


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
