"""A run that goes on is told of another day and another branch with its newest words, and of nothing else."""

import re
import subprocess
from collections.abc import Callable
from datetime import date, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agent.app.run.headless import run_headless
from agent.app.run.past import branch_record, past_of
from agent.app.run.request import RunRequest
from agent.core.messages import AssistantMessage, SystemMessage, UserMessage
from agent.repo.branch import branch_of
from agent.session.store import SessionStore
from agent.session.transcript import message_record
from tests.app.talk import extends, messages_of, served_by, talking
from tests.conftest import StartServer

DAY = date(2026, 2, 28)
BEGAN = {"type": "turn_started", "started": datetime(2026, 2, 28, 23, 59).timestamp()}
SAID = (SystemMessage("s"), UserMessage("Do it."), AssistantMessage("Done."))


@pytest.fixture
def repo(work: Path) -> Path:
    subprocess.run(["git", "init", "-qb", "main", str(work)], check=True)
    return work


def onto(repo: Path, branch: str) -> None:
    subprocess.run(["git", "symbolic-ref", "HEAD", f"refs/heads/{branch}"], cwd=repo, check=True)


def news(repo: Path, today: date, *records: Any) -> str:
    """What a run that goes on with these records tells the model."""
    return past_of((*map(message_record, SAID), *records)).news(repo, today)


def test_same_day_and_branch_are_not_told(repo: Path):
    assert news(repo, DAY, BEGAN, branch_record("main")) == ""


def test_another_day_and_branch_are_told(repo: Path):
    told = news(repo, date(2026, 3, 1), BEGAN, branch_record("old"))
    assert told == "You are now on the git branch main.\n\nToday is 2026-03-01."


def test_what_was_told_last_counts_more_than_what_was_noted(repo: Path):
    told = UserMessage("You are now on the git branch main.\n\nToday is 2026-03-01.\n\nGo on")
    assert news(repo, date(2026, 3, 1), message_record(told), BEGAN, branch_record("old")) == ""


@pytest.mark.parametrize("started", [0.0, -1, 1e300, "soon", None])
def test_day_and_branch_that_nobody_noted_are_no_news(work: Path, started: Any):
    assert news(work, DAY, {"type": "turn_started", "started": started}) == ""


def test_a_head_that_is_on_no_branch_is_named_by_its_commit(repo: Path):
    def git(*words: str) -> str:
        who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        return subprocess.run(
            ["git", *who, *words], cwd=repo, check=True, capture_output=True
        ).stdout.decode()

    git("commit", "-q", "--allow-empty", "-m", "one")
    git("checkout", "-q", "--detach")
    assert branch_of(repo) == git("rev-parse", "HEAD")[:10]


def goes_on(repo: Path, server: Any) -> Callable[[], str]:
    def run() -> str:
        request = RunRequest(task=None, prompt="Go on.", directory=repo, output="json", resume="last")
        assert run_headless(request, served_by(server)) == 0
        return messages_of(server)[-1][-1]["content"]

    return run


def test_runs_that_go_on_extend_the_prompt_and_tell_only_what_is_new(
    repo: Path, scripted_server: StartServer
):
    server = scripted_server({"text": "Yes.", "times": 0})
    begun = RunRequest(task=None, prompt="Hello.", directory=repo, output="json")
    assert run_headless(begun, served_by(server)) == 0
    assert "main" not in messages_of(server)[-1][-1]["content"]
    run = goes_on(repo, server)

    assert run().endswith("Go on.")
    assert "branch" not in messages_of(server)[-1][-1]["content"]
    onto(repo, "v1.2")
    assert "You are now on the git branch v1.2.\n\n" in run()
    assert "branch" not in run()
    [events] = (repo.parent / "state").glob("sessions/*/*/events.jsonl")
    events.write_text(
        re.sub(r'"started":\s?\d[\d.]*', '"started": 86400', events.read_text("utf-8")), "utf-8"
    )
    assert re.search(r"^Today is \d{4}-\d\d-\d\d\.\n\n", run(), re.M)
    assert "Today" not in run()
    requests = messages_of(server)
    assert all(extends(*pair) for pair in pairwise(requests))


async def test_a_person_who_goes_on_with_a_run_on_another_branch_has_the_model_told(
    repo: Path, scripted_server: StartServer
):
    server = scripted_server({"text": "Yes.", "times": 0})
    with SessionStore.create(repo.parent / "state", repo, task="Hello.") as store:
        for record in (BEGAN, branch_record("old"), *map(message_record, SAID)):
            store.append(record)
    async with talking(repo, server, resume=store.id, today=lambda: DAY) as talk:
        await talk.turn("Go on.")
    told = messages_of(server)[-1][-1]["content"]
    assert told == "You are now on the git branch main.\n\nToday is 2026-02-28.\n\nGo on."
