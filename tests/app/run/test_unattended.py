"""A session comes to a result whatever happens in it."""

import io
import json
from pathlib import Path
from typing import Any, cast

import pytest

from agent.app.chat.record import open_store
from agent.app.run.job import Job
from agent.app.run.output import RunOutput
from agent.app.run.request import RunRequest
from agent.app.run.unattended import UnattendedSession, summary_line
from agent.app.servers.serving import Serving
from agent.core.errors import AgentError, ModelFileError, ServerError
from agent.core.events import TurnFinished
from agent.core.limits import TimeLimit
from agent.core.stats import total
from agent.headless.task import Task
from agent.server.record import Endpoint
from agent.session.store import SessionStore, load
from tests.app.talk import served_by, settings_with, talking
from tests.conftest import StartServer
from tests.fakes.script import call


class BrokenServing:
    """Raises as soon as anything is asked of it."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def tool_protocol(self, endpoint: Endpoint) -> str:
        raise self._error


async def run(tmp_path: Path, error: Exception) -> tuple[int, list[dict[str, Any]], list[dict[str, Any]]]:
    """The exit code, what was printed and what was stored of a session in which `error` comes up."""
    printed = io.StringIO()
    job = Job(
        request=RunRequest(task=None, prompt="Do it", output="jsonl"),
        task=Task(text="Do it"),
        workspace=tmp_path,
        serving=cast("Serving", BrokenServing(error)),
        output=RunOutput("jsonl", progress=io.StringIO(), answer=printed),
        deadline=TimeLimit(0),
    )
    endpoint = Endpoint(base_url="http://127.0.0.1:9", api_key="", profile="mine", context_tokens=4096)
    with SessionStore.create(tmp_path / "state", tmp_path) as store:
        code = await UnattendedSession(job, endpoint, store).run()
    return code, [json.loads(line) for line in printed.getvalue().splitlines()], load(store.path)


@pytest.mark.parametrize(
    ("error", "code", "reason"),
    [
        (ServerError("it is gone", "start it"), 5, "server_failed"),
        (ModelFileError("it is damaged", "fetch it"), 6, "gave_up"),
        (AgentError("no luck", "try again"), 1, "gave_up"),
    ],
)
async def test_error_on_the_way_is_part_of_the_result(
    tmp_path: Path, error: AgentError, code: int, reason: str
):
    exit_code, printed, stored = await run(tmp_path, error)
    assert exit_code == code
    assert [record["type"] for record in printed] == ["turn_finished", "result"]
    assert printed[0]["reason"] == reason
    assert (printed[1]["error"], printed[1]["hint"]) == (error.message, error.hint)
    assert stored[1:] == printed


async def test_mistake_of_the_program_is_shown_and_still_a_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    exit_code, printed, _ = await run(tmp_path, ValueError("odd"))
    assert exit_code == 1
    assert printed[-1]["error"] == "unexpected ValueError: odd"
    assert "Traceback" in capsys.readouterr().err


def test_figures_that_are_not_there_leave_no_gap():
    finished = TurnFinished(reason="cancelled", answer="", detail="", steps=1, stats=total([]))
    assert summary_line(finished, 7.62) == "1 step · 7.6 s"


async def test_turn_of_a_run_that_leaves_out_results_can_be_gone_back_to_before(
    scripted_server: StartServer, work: Path
):
    chat = [call("shell", command=f"seq {number}000 {number}999") for number in range(1, 5)]
    later = [call("shell", command=f"seq {number}000 {number}599") for number in range(5, 8)]
    server = scripted_server(*chat, "Printed.", *later, "Again.", n_ctx=12_500)
    async with talking(work, server, mode="auto", allow=("shell",)) as talk:
        await talk.turn("first")
    serving = served_by(server)(settings_with(mode="auto", allow=("shell",)))
    output = RunOutput("jsonl", progress=io.StringIO(), answer=io.StringIO())
    job = Job(
        request=RunRequest(task=None, prompt="second", output="jsonl"),
        task=Task(text="second"),
        workspace=work,
        serving=serving,
        output=output,
        deadline=TimeLimit(0),
    )
    store, old = open_store(work, profile="", kind="run", resume="last")
    with store:
        await UnattendedSession(job, await serving.endpoint(output.show), store, old).run()
    async with talking(work, server, resume="last") as talk:
        points = await talk.session.command("rewind_points", {})
    causes = [record["cause"] for record in load(store.path) if record["type"] == "history"]
    assert causes[-1] == "results of earlier turns were left out"
    assert [(point.turn, point.chat) for point in points] == [(1, True), (2, True)]
