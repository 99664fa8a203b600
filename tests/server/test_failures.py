"""What a person reads when a server does not start or ends; the cases are in tests/cases/servers."""

import signal
import tomllib
from pathlib import Path
from typing import Any

import pytest

from agent.core.errors import ModelFileError, ServerError
from agent.server.flag_keys import FLAGS_BY_KEY, profile_key
from agent.server.logs import classify, describe_exit
from agent.server.profile import Profile, Sampling, Speculation

FILE = Path(__file__).parents[1] / "cases" / "servers" / "failures.toml"
CASES = tomllib.loads(FILE.read_text("utf-8"))["case"]
LOG = Path("/logs/trial.log")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_person_reads_the_cause_the_line_of_the_log_and_the_remedy(case: dict[str, Any]):
    failure = classify(case["log"], case["status"])
    error = failure.as_error("trial", LOG)
    assert failure.kind == case["kind"]
    assert error.message == case["message"]
    assert error.hint == f"{case['hint']} (log: {LOG})"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_problems_of_files_have_the_exit_code_of_files(case: dict[str, Any]):
    error = classify(case["log"], case["status"]).as_error("trial", LOG)
    of_a_file = case["kind"] in ("file-missing", "file-damaged")
    assert isinstance(error, ModelFileError if of_a_file else ServerError)


def test_every_key_that_a_remedy_names_is_one_of_a_profile():
    tables = {"speculation": Speculation, "sampling": Sampling}
    for key in FLAGS_BY_KEY:
        table, _, name = key.rpartition(".")
        assert name in tables.get(table, Profile).model_fields, key


@pytest.mark.parametrize(
    ("flag", "key"),
    [("-c", "context"), ("--spec_draft_n_max", "speculation.n_max"), ("--numa", None)],
)
def test_key_behind_a_flag_is_found_in_each_spelling(flag: str, key: str | None):
    assert profile_key(flag) == key


def test_cause_that_came_after_the_server_was_ready_counts_alone():
    log = "E unknown model architecture: 'x'\nI srv: listening on http://127.0.0.1:1\nGGML_ASSERT(n) failed\n"
    assert classify(log, -6).kind == "assertion"


@pytest.mark.parametrize(
    ("status", "words"),
    [(1, "status 1"), (-11, "signal SIGSEGV"), (139, "signal SIGSEGV"), (250, "status 250")],
)
def test_status_of_a_shell_is_told_as_the_signal_it_was(status: int, words: str):
    assert describe_exit(status) == words


def test_signal_names_are_not_needed_on_every_system():
    assert classify("", -63).summary.startswith("it ended with signal")
    assert classify("", -signal.SIGINT).kind == "stopped"
