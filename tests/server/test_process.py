"""The life of a server process, with a fake child in place of the engine."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agent.core.errors import ModelFileError, ServerError
from agent.server import record as records
from agent.server.identity import process_identity
from agent.server.logs import INSTALL_ENGINE
from agent.server.process import ensure_running, explain_end, stop_server
from agent.server.record import Record, find_running, list_records
from tests.fakes.full_disk import room_for
from tests.patience import limits
from tests.server.conftest import FAKE_CHILD, MakePlan, make_profile, starts


def the_record(plan) -> Record:
    record = records.read_record(records.record_file(plan.runtime_folder, plan.fingerprint))
    assert record is not None
    return record


def program(command: list[str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def kill_and_wait(pid: int) -> None:
    """Ends a child without collecting it."""
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


async def test_starts_a_server_and_learns_its_real_context(plan: MakePlan):
    endpoint = await ensure_running(plan())
    assert endpoint.context_tokens == 1024
    assert endpoint.base_url.startswith("http://127.0.0.1:")
    assert find_running(endpoint.fingerprint or "", plan().runtime_folder) == endpoint


async def test_second_request_reuses_the_running_server(plan: MakePlan, tmp_path: Path):
    first = await ensure_running(plan())
    second = await ensure_running(plan())
    assert second == first
    assert starts(tmp_path) == [first.pid]


async def test_looking_for_a_running_server_leaves_the_event_loop_free(plan: MakePlan):
    """Whether it is healthy is asked over the network, and one that hangs takes seconds to say nothing."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()
        writer.close()

    made = plan()
    await ensure_running(made)
    in_this_loop = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with in_this_loop:
        port = in_this_loop.sockets[0].getsockname()[1]
        records.write_record(replace(the_record(made), port=port), made.runtime_folder)
        endpoint = await ensure_running(made)
    assert endpoint.base_url == f"http://127.0.0.1:{port}"


async def test_requests_at_the_same_time_share_one_server(plan: MakePlan, tmp_path: Path):
    endpoints = await asyncio.gather(*(ensure_running(plan()) for _ in range(4)))
    assert len({endpoint.pid for endpoint in endpoints}) == 1
    assert len(starts(tmp_path)) == 1


async def test_states_are_reported_in_order(plan: MakePlan):
    states: list[str] = []
    await ensure_running(plan(), lambda state, seconds, detail: states.append(state))
    assert states[-1] == "ready"
    assert set(states[:-1]) == {"starting"}


async def test_server_outlives_its_starter_in_a_session_of_its_own(plan: MakePlan):
    endpoint = await ensure_running(plan())
    assert endpoint.pid is not None
    assert os.getsid(endpoint.pid) == endpoint.pid


async def test_record_and_key_are_readable_by_their_owner_only(plan: MakePlan):
    made = plan()
    await ensure_running(made)
    modes = {
        path.name.partition(".")[2]: path.stat().st_mode & 0o777 for path in made.runtime_folder.iterdir()
    }
    assert set(modes.values()) == {0o600}
    assert made.runtime_folder.stat().st_mode & 0o777 == 0o700


async def test_key_is_in_no_argument_log_or_record(plan: MakePlan):
    made = plan()
    endpoint = await ensure_running(made)
    command = Path(f"/proc/{endpoint.pid}/cmdline").read_bytes() if sys.platform == "linux" else b""
    record = records.record_file(made.runtime_folder, made.fingerprint).read_bytes()
    spec = records.spec_file(made.runtime_folder, made.fingerprint).read_bytes()
    for text in (command, record, spec, made.log_file.read_bytes()):
        assert endpoint.api_key.encode() not in text


async def test_failed_start_quotes_the_log_and_leaves_nothing_behind(plan: MakePlan):
    made = plan("--die", "unknown model architecture: 'hopper'")
    with pytest.raises(ServerError, match="unknown model architecture: 'hopper'") as caught:
        await ensure_running(made)
    assert str(made.log_file) in caught.value.hint
    assert list_records(made.runtime_folder) == []
    assert [path.name for path in made.runtime_folder.iterdir()] == ["server.lock"]


async def test_damaged_model_file_is_an_error_of_the_file(plan: MakePlan):
    with pytest.raises(ModelFileError, match="damaged or only half there"):
        await ensure_running(plan("--die", "invalid magic characters: 'garb', expected 'GGUF'"))


async def test_server_killed_while_loading_fails_at_once(plan: MakePlan):
    with pytest.raises(ServerError, match="killed"):
        await ensure_running(plan("--die-by-signal", "9"))


async def test_server_that_never_becomes_healthy_is_given_up_and_stopped(plan: MakePlan, tmp_path: Path):
    for seconds in limits(3.0):
        with pytest.raises(ServerError, match="was not ready after"):
            await ensure_running(plan("--never-healthy", start_seconds=seconds))
        if starts(tmp_path):
            break
    (pid,) = starts(tmp_path)
    assert process_identity(pid) is None


async def test_a_server_is_stopped_also_where_nothing_can_be_written_down(plan: MakePlan):
    made = plan()
    await ensure_running(made)
    record = the_record(made)
    with room_for(0):
        assert await stop_server(record, made.runtime_folder) == "stopped"
    assert process_identity(record.pid) is None
    assert list_records(made.runtime_folder) == []


async def test_server_that_ignores_sigterm_is_killed(plan: MakePlan):
    made = plan("--ignore-term")
    await ensure_running(made)
    record = the_record(made)
    assert await stop_server(record, made.runtime_folder, grace_seconds=0.3) == "stopped"
    assert process_identity(record.pid) is None
    assert list_records(made.runtime_folder) == []


async def test_port_taken_in_between_leads_to_another_port(plan: MakePlan, tmp_path: Path):
    endpoint = await ensure_running(plan("--port-taken", "1"))
    assert len(starts(tmp_path)) == 2
    assert endpoint.pid == starts(tmp_path)[-1]


async def test_port_that_is_always_taken_is_given_up(plan: MakePlan, tmp_path: Path):
    with pytest.raises(ServerError, match="its port is in use"):
        await ensure_running(plan("--port-taken", "100"))
    assert len(starts(tmp_path)) == 3


async def test_fixed_port_in_use_is_named(plan: MakePlan, tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ServerError, match=f"port {port}, which profile 'trial' asks for, is in use"):
            await ensure_running(plan(profile=make_profile(port=port)))
    assert starts(tmp_path) == []


async def test_dead_leftover_is_cleared_away(plan: MakePlan, tmp_path: Path):
    made = plan()
    first = await ensure_running(made)
    assert first.pid is not None
    kill_and_wait(first.pid)
    second = await ensure_running(made)
    assert second.pid != first.pid
    assert [record.pid for record in list_records(made.runtime_folder)] == [second.pid]


async def test_server_that_stopped_answering_is_replaced(plan: MakePlan, tmp_path: Path):
    sick = tmp_path / "sick"
    made = plan("--sick-if", str(sick))
    first = await ensure_running(made)
    sick.touch()
    second = await ensure_running(plan())
    assert second.pid != first.pid
    assert process_identity(first.pid or 0) is None


@pytest.mark.parametrize("context", [1024, 512])
async def test_server_that_answers_nothing_for_a_while_is_waited_for(
    plan: MakePlan, tmp_path: Path, context: int
):
    """It may be held up in a request of another session; one with other settings may, too."""
    silent = tmp_path / "silent"
    first = await ensure_running(plan("--silent-while", str(silent)))
    silent.touch()
    details: list[str] = []

    def report(state: str, seconds: float, detail: str) -> None:
        details.append(detail)
        if state == "waiting":
            silent.unlink(missing_ok=True)

    asked = make_profile(context=context)
    second = await ensure_running(plan(profile=asked), report)
    assert any("does not answer now" in detail for detail in details)
    assert (second.pid == first.pid) == (context == 1024)


async def test_server_that_answers_nothing_for_too_long_is_dead_and_replaced(plan: MakePlan, tmp_path: Path):
    silent = tmp_path / "silent"
    first = await ensure_running(plan("--silent-while", str(silent)))
    silent.touch()
    second = await ensure_running(plan(silent_seconds=0.0))
    assert second.pid != first.pid
    assert process_identity(first.pid or 0) is None


async def test_idle_server_with_other_settings_is_stopped_first(plan: MakePlan):
    first = await ensure_running(plan())
    details: list[str] = []
    second = await ensure_running(
        plan(profile=make_profile(context=2048)), lambda state, seconds, detail: details.append(detail)
    )
    assert second.context_tokens == 2048
    assert process_identity(first.pid or 0) is None
    assert any("profile 'trial'" in detail for detail in details)


async def test_busy_server_with_other_settings_is_left_alone(plan: MakePlan):
    first = await ensure_running(plan("--busy"))
    told: list[tuple[str, str]] = []
    with pytest.raises(ServerError, match="is answering a request") as raised:
        await ensure_running(
            plan(profile=make_profile(context=2048)), lambda state, _, detail: told.append((state, detail))
        )
    waiting = "waiting for the server of profile 'trial', which is busy with another session"
    assert ("waiting", waiting) in told
    assert "`agent server stop --force trial`" in raised.value.hint
    assert find_running(first.fingerprint or "", plan().runtime_folder) is not None


async def test_process_that_only_has_the_recorded_number_is_not_touched(plan: MakePlan):
    made = plan()
    await ensure_running(made)
    ours = the_record(made)
    stranger = program([sys.executable, "-c", "import signal; signal.pause()"])
    try:
        forged = replace(ours, pid=stranger.pid)
        assert await stop_server(forged, made.runtime_folder) == "was-not-running"
        same_start = replace(forged, identity=process_identity(stranger.pid) or "", port=1)
        assert await stop_server(same_start, made.runtime_folder) == "not-ours"
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.communicate()
        os.kill(ours.pid, signal.SIGKILL)


async def test_cancelled_start_leaves_no_process(plan: MakePlan, tmp_path: Path):
    never = tmp_path / "never"
    waiting = asyncio.Event()
    made = plan("--wait-for", str(never))
    start = asyncio.create_task(ensure_running(made, lambda state, seconds, detail: waiting.set()))
    await waiting.wait()
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    assert all(process_identity(pid) is None for pid in starts(tmp_path))
    assert list_records(made.runtime_folder) == []


STARTER = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from agent.server.fingerprint import fingerprint
from agent.server.launch import LaunchPlan
from agent.server.process import ensure_running
from tests.server.conftest import make_profile
folder = Path(sys.argv[2])
plan = LaunchPlan(profile=make_profile(), fingerprint=fingerprint(make_profile(), folder), threads=1,
    model_path=folder / "model.gguf", runtime_folder=folder / "run", log_folder=folder / "logs",
    start_seconds=60.0, command=tuple(sys.argv[3:]))
asyncio.run(ensure_running(plan, lambda state, seconds, detail: print(state, flush=True)))
"""


async def test_server_still_loading_is_adopted_after_its_starter_was_killed(plan: MakePlan, tmp_path: Path):
    go = tmp_path / "go"
    made = plan("--wait-for", str(go))
    root = str(FAKE_CHILD.parents[2])
    starter = program([sys.executable, "-c", STARTER, root, str(tmp_path), *made.command])
    assert starter.stdout is not None
    assert starter.stdout.readline() == b"starting\n"
    starter.kill()
    starter.communicate()
    adopting = asyncio.create_task(ensure_running(made, lambda state, seconds, detail: go.touch()))
    endpoint = await adopting
    assert starts(tmp_path) == [endpoint.pid]


async def test_end_of_a_running_server_is_explained(plan: MakePlan):
    made = plan()
    await ensure_running(made)
    record = the_record(made)
    assert explain_end(record) is None
    kill_and_wait(record.pid)
    error = explain_end(record)
    assert error is not None
    assert "is gone: it was killed" in error.message
    assert error.hint.startswith("close other programs, lower `context`")


async def test_draft_model_that_does_nothing_is_reported(plan: MakePlan):
    profile = make_profile(draft={"file": "draft.gguf"}, speculation={"kind": "draft"})
    details: list[str] = []
    await ensure_running(plan(profile=profile), lambda state, seconds, detail: details.append(detail))
    assert any("the draft is loaded, but nothing is drafted with it" in detail for detail in details)


async def test_draft_model_that_drafts_is_not_complained_about(plan: MakePlan):
    profile = make_profile(draft={"file": "draft.gguf"}, speculation={"kind": "draft"})
    details: list[str] = []
    await ensure_running(
        plan("--drafted", "5", profile=profile), lambda state, seconds, detail: details.append(detail)
    )
    assert not any("draft" in detail for detail in details if "loading" not in detail)


async def test_program_that_cannot_be_started_is_an_error_of_the_server(plan: MakePlan):
    made = replace(plan(), command=("/nowhere/python",))
    with pytest.raises(ServerError, match=r"cannot start the server: No such file .*\(/nowhere/python\)"):
        await ensure_running(made)


async def test_former_log_is_kept_beside_the_new_one(plan: MakePlan):
    made = plan("--die", "unknown model architecture: 'first'")
    with pytest.raises(ServerError):
        await ensure_running(made)
    with pytest.raises(ServerError):
        await ensure_running(plan("--die", "unknown model architecture: 'second'"))
    assert "second" in made.log_file.read_text("utf-8")
    assert "first" in made.log_file.with_name(f"{made.log_file.name}.1").read_text("utf-8")


def test_hint_for_a_missing_engine_is_a_command_to_copy():
    assert "pip install 'dflash-agent[embedded]'" in INSTALL_ENGINE


async def test_record_that_is_no_record_is_ignored(plan: MakePlan):
    made = plan()
    made.runtime_folder.mkdir(mode=0o700)
    for name, text in (("a", "not json"), ("b", "[]"), ("c", json.dumps({"pid": "one"}))):
        (made.runtime_folder / f"server-{name}.record.json").write_text(text, "utf-8")
    assert list_records(made.runtime_folder) == []
    assert (await ensure_running(made)).context_tokens == 1024
