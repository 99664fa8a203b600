"""A llama-server binary that the run itself starts and looks after: the fake one, with its ways to fail."""

import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Done, Place, ended, is_running
from tests.fakes.llama_binary import FakeBinary, make_llama_binary, write_model
from tests.real.tiny_pair import write_tiny_pair

pytestmark = pytest.mark.timeout(300)

RUN = (sys.executable, "-m", "agent", "run")
PROFILE = """\
engine = "llama-server"
context = 4096
threads = 1
{more}
[target]
file = "target.gguf"
[tools]
protocol = "native"
"""
DRAFT = '[draft]\nfile = "draft.gguf"\n[speculation]\nkind = "dflash"\n'


@pytest.fixture
def binary(place: Place) -> Iterator[FakeBinary]:
    """A fake llama-server on which the profile `mine` runs; what it started is killed at the end."""
    models = place.folder / "data" / "models"
    models.mkdir(parents=True)
    write_model(models / "target.gguf")
    place.profile("mine", PROFILE.format(more=""))
    made = make_llama_binary(place.folder / "bin", any_model=True)
    place.variables |= {"AGENT_PROFILE": "mine", "AGENT_SERVER_BINARY": str(made.path)}
    yield made
    for start in made.starts():
        with suppress(ProcessLookupError):
            os.kill(start["pid"], signal.SIGKILL)


def with_draft(place: Place) -> None:
    write_tiny_pair(place.folder / "data" / "models")
    place.profile("mine", PROFILE.format(more="") + DRAFT)


def statuses(place: Place) -> list[dict[str, Any]]:
    return json.loads(place.run("server", "status", "--json").out)


def warnings(done: Done, words: str) -> list[str]:
    texts = [event["text"] for event in done.records if event["type"] == "notice"]
    return [text for text in texts if words in text]


def test_start_status_and_stop(place: Place, binary: FakeBinary):
    started = place.run("server", "start")
    assert started.code == 0, started.err
    assert "mine: ready at http://127.0.0.1:" in started.err
    [status] = statuses(place)
    assert (status["state"], status["engine"], status["context_tokens"]) == ("ready", "llama-server", 4096)
    assert status["binary"] == str(binary.path)
    assert place.run("server", "start").code == 0
    assert len(binary.starts()) == 1
    assert place.run("server", "stop").code == 0
    assert not is_running(status["pid"])
    assert statuses(place) == []


def test_the_first_server_of_a_slow_machine_has_a_smaller_batch(place: Place, binary: FakeBinary):
    place.profile("mine", PROFILE.format(more="batch = 64\nbatch_seconds = 0.5"))
    binary.tell(any_model=True, prompt_speed=40.0)
    started = place.run("server", "start")
    assert "reads 20 tokens at once instead of 64: at 40 tok/s" in started.err
    batches = [start["argv"][start["argv"].index("-b") + 1] for start in binary.starts()]
    assert batches == ["64", "20"]
    [status] = statuses(place)
    assert (status["state"], status["batch_limit"]) == ("ready", 20)
    place.run("server", "restart")
    assert len(binary.starts()) == 3  # what is known is not measured again


def test_a_run_that_read_slowly_gives_the_next_server_a_smaller_batch(place: Place, binary: FakeBinary):
    place.profile("mine", PROFILE.format(more="batch = 64\nbatch_seconds = 0.5"))
    binary.tell(any_model=True, prompt_speed=100.0)
    assert place.run("server", "start").code == 0
    binary.tell(any_model=True, prompt_speed=40.0)
    place.run("server", "restart")
    place.run("run", "-p", "word " * 400, "--max-steps", "1")
    command = place.run("server", "command", "mine", "--one-line")
    assert " -b 20 -ub 20 " in command.out
    assert "note: reads 20 tokens at once instead of 64: at 40 tok/s" in command.err


def test_restart_brings_another_process_of_the_same_server(place: Place, binary: FakeBinary):
    assert place.run("server", "start").code == 0
    [before] = statuses(place)
    assert place.run("server", "restart").code == 0
    [after] = statuses(place)
    assert not is_running(before["pid"])
    assert (after["state"], after["fingerprint"]) == ("ready", before["fingerprint"])
    assert [start["pid"] for start in binary.starts()] == [before["pid"], after["pid"]]


def test_log_is_followed_also_into_that_of_the_next_start(place: Place, binary: FakeBinary):
    assert place.run("server", "start").code == 0
    log = Path(statuses(place)[0]["log_file"])
    following = place.start("server", "logs", "-f")
    try:
        assert following.stdout is not None
        assert next(line for line in following.stdout if "listening on" in line)
        with log.open("a", encoding="utf-8") as file:
            file.write("what came later\n")
        assert next(line for line in following.stdout if line == "what came later\n")
        log.replace(log.with_name(f"{log.name}.1"))
        log.write_text("another start\n", "utf-8")
        assert next(line for line in following.stdout if line == "another start\n")
    finally:
        following.send_signal(signal.SIGINT)
        assert ended(following).code == 130


def test_page_of_the_server_is_opened_and_its_key_is_only_named_by_its_file(place: Place, binary: FakeBinary):
    opened = place.folder / "opened"
    browser = place.folder / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n', "utf-8")
    browser.chmod(0o755)
    with_browser = {"BROWSER": str(browser)}
    assert place.run("server", "open", environment=with_browser).code == 5
    assert not opened.exists()
    assert place.run("server", "start").code == 0
    done = place.run("server", "open", environment=with_browser)
    [status] = statuses(place)
    assert (done.code, done.out) == (0, f"{status['url']}\n")
    assert opened.read_text("utf-8") == done.out
    [key_file] = (place.state / "run").glob("*.key")
    assert str(key_file) in done.err
    assert key_file.read_text("utf-8").strip() not in done.out + done.err


def test_key_is_in_a_file_and_never_in_an_argument(place: Place, binary: FakeBinary):
    assert place.run("server", "start").code == 0
    [start] = binary.starts()
    key_file = Path(start["argv"][start["argv"].index("--api-key-file") + 1])
    assert key_file.stat().st_mode & 0o777 == 0o600
    key = key_file.read_text("utf-8").strip()
    assert len(key) > 30
    assert key not in " ".join(start["argv"])
    assert "--cors-origins" in start["argv"]


def test_surroundings_do_not_reach_the_server(place: Place, binary: FakeBinary):
    (place.workspace / "libggml-evil.so").write_bytes(b"")
    stray = {"LLAMA_ARG_CTX_SIZE": "64", "LLAMA_API_KEY": "x", "XDG_CONFIG_HOME": str(place.folder / "xdg")}
    assert place.run("server", "start", environment=stray).code == 0
    [start] = binary.starts()
    assert start["variables"] == ["XDG_CONFIG_HOME"]
    folder = Path(f"/proc/{start['pid']}/cwd").resolve()
    assert folder == (place.folder / "data" / "models").resolve()
    variables = Path(f"/proc/{start['pid']}/environ").read_bytes()
    assert str(place.folder / "xdg").encode() not in variables
    assert b"GGML_NO_BACKTRACE=1" in variables


def test_less_context_than_asked_for_is_told_at_the_start_and_by_status(place: Place, binary: FakeBinary):
    binary.tell(any_model=True, context=1024)
    assert "warning: the server gives 1024 tokens of context" in place.run("server", "start").err
    assert "warning: the server gives 1024 tokens" in place.run("server", "status").out
    [status] = statuses(place)
    assert [finding["code"] for finding in status["findings"]] == ["context"]
    done = place.run("-p", "Hello", "--output", "jsonl", program=RUN)
    [told] = [event for event in done.records if "gives 1024 tokens of context" in event.get("detail", "")]
    assert (told["type"], told["state"]) == ("server_state", "warning")
    assert len(binary.starts()) == 1


def test_drafting_is_proven_by_the_warm_up(place: Place, binary: FakeBinary):
    with_draft(place)
    assert place.run("server", "start").code == 0
    assert "drafts with dflash" in place.run("server", "status").out
    assert statuses(place)[0]["speculates"] is True


def test_drafting_that_does_not_happen_is_told(place: Place, binary: FakeBinary):
    with_draft(place)
    binary.tell(any_model=True, speculation="off")
    started = place.run("server", "start")
    assert "is not in effect: the server answers without drafting" in started.err
    assert "dflash is OFF" in place.run("server", "status").out


def test_pair_that_cannot_work_is_refused_before_anything_is_started(place: Place, binary: FakeBinary):
    with_draft(place)
    write_tiny_pair(place.folder / "data" / "models", width=32)
    started = place.run("server", "start")
    assert started.code == 6
    assert "hidden size" in started.complaint
    assert binary.starts() == []


def test_flag_that_the_binary_does_not_know_is_refused_before_anything_is_started(
    place: Place, binary: FakeBinary
):
    place.profile("mine", PROFILE.format(more='extra_args = ["--frobnicate"]'))
    started = place.run("server", "start")
    assert started.code == 2
    assert "does not know --frobnicate" in started.complaint
    assert binary.starts() == []


def test_server_that_comes_up_as_a_router_is_a_failure(place: Place, binary: FakeBinary):
    path = binary.path
    real = path.with_name("real")
    path.rename(real)
    path.write_text(f'#!/bin/sh\ncase "$1" in -m) shift 2;; esac\nexec {real} "$@"\n', "utf-8")
    path.chmod(0o755)
    started = place.run("server", "start")
    assert started.code == 5
    assert "came up as a router" in started.complaint
    assert statuses(place) == []


def test_fixed_port_of_somebody_else_is_an_error_that_says_how_to_use_it(place: Place, binary: FakeBinary):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        place.profile("mine", PROFILE.format(more=f"port = {port}"))
        started = place.run("server", "start")
    assert started.code == 5
    assert f"port {port}, which profile 'mine' asks for, is in use" in started.complaint
    assert f"server.url = http://127.0.0.1:{port}" in started.err


def test_own_key_file_is_used_and_kept(place: Place, binary: FakeBinary):
    key_file = place.folder / "keys"
    key_file.write_text("# mine\nsecret-of-mine\n", "utf-8")
    place.profile("mine", PROFILE.format(more=f'api_key_file = "{key_file}"'))
    assert place.run("server", "start").code == 0
    assert place.run("server", "stop").code == 0
    assert key_file.exists()
    key_file.write_text("# none\n", "utf-8")
    started = place.run("server", "start")
    assert started.code == 2
    assert "there is no key in" in started.complaint


def test_busy_server_is_left_running_unless_it_is_stopped_by_force(place: Place, binary: FakeBinary):
    binary.tell(any_model=True, busy=True)
    assert place.run("server", "start").code == 0
    place.profile("other", PROFILE.format(more="batch = 64"))
    other = place.run("server", "start", "other")
    assert other.code == 5
    assert "is answering a request" in other.complaint
    for action in ("stop", "restart"):
        refused = place.run("server", action)
        assert refused.code == 5
        assert "is answering a request, so it is left running" in refused.complaint
        assert "`agent server stop --force mine`" in refused.err
    assert place.run("server", "status").code == 0
    stopped = place.run("server", "stop", "--force")
    assert stopped.code == 0
    assert "was answering a request, which ends now" in stopped.err
    assert place.run("server", "status").code == 1


def test_program_that_is_missing_names_the_command_that_brings_one(place: Place, binary: FakeBinary):
    place.variables["AGENT_SERVER_BINARY"] = ""
    started = place.run("server", "start", environment={"PATH": "/usr/bin:/bin"})
    assert started.code == 5
    assert "agent server install" in started.err


def test_run_goes_on_when_its_server_dies_once(place: Place, binary: FakeBinary):
    binary.tell(any_model=True, endless=False, die_in_stream=2, faulty_starts=1)
    done = place.run("-p", "Hello", "--output", "jsonl", program=RUN)
    assert done.code == 0, done.err
    assert done.result["answer"] == "All is well, there is nothing to do."
    [notice] = warnings(done, "is gone")
    assert notice.endswith("it is started again")
    assert len(binary.starts()) == 2


def test_run_goes_on_without_the_draft_when_its_server_dies_twice_with_it(place: Place, binary: FakeBinary):
    with_draft(place)
    long = " ".join(str(number) for number in range(100))  # longer than the warm-up
    binary.tell(any_model=True, endless=False, reply=long, die_in_stream=40, only_when_drafting=True)
    done = place.run("-p", "Hello", "--output", "jsonl", program=RUN)
    assert done.code == 0, done.err
    first, second = warnings(done, "is gone")
    assert first.endswith("it is started again")
    assert second.endswith("it is started without its draft model")
    assert ["--spec-type" in start["argv"] for start in binary.starts()] == [True, True, False]
    assert "runs without its draft model" in place.run("server", "status").out


@pytest.mark.parametrize("is_shared", [False, True])
def test_run_goes_on_without_the_draft_when_its_server_lives_and_fails_each_time_with_it(
    place: Place, binary: FakeBinary, is_shared: bool
):
    with_draft(place)
    words = "failed to process the draft"
    binary.tell(any_model=True, endless=False, chat_error=words, only_when_drafting=True, busy=is_shared)
    done = place.run("-p", "Hello", "--output", "jsonl", program=RUN)
    chats = [one["body"] for one in binary.requests() if one["path"] == "/v1/chat/completions"]
    assert [body["cache_prompt"] for body in chats[:3]] == [True, True, False]
    if is_shared:  # somebody else is being served; a trial of tool calls fails, and then the turn
        assert (done.code, len(binary.starts()), len(chats)) == (5, 1, 6)
        return
    assert done.code == 0, done.err
    [told] = warnings(done, words)
    assert told == f"the server failed: {words}; it is started without its draft model"
    assert ["--spec-type" in start["argv"] for start in binary.starts()] == [True, False]


def test_run_gives_up_when_its_server_dies_again_and_again(place: Place, binary: FakeBinary):
    binary.tell(any_model=True, die_in_stream=2)
    done = place.run("-p", "Hello", "--output", "jsonl", program=RUN)
    assert done.code == 5
    assert done.result["error"].startswith("the server of profile 'mine' is gone")
    assert len(binary.starts()) == 2
