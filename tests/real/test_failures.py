"""The real llama-server fails in the ways that tests/cases/servers has, and is understood."""

from pathlib import Path
from typing import Any

import pytest

from agent.server.logs import classify
from tests.real.llama_server import run_until_it_fails, taken_port, write_files
from tests.server.test_failures import CASES

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
REAL = [case for case in CASES if "real" in case]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return write_files(tmp_path_factory.mktemp("models"))


@pytest.mark.parametrize("case", REAL, ids=lambda case: case["name"])
def test_real_server_is_understood_as_the_case_says(
    case: dict[str, Any], files: dict[str, str], tmp_path: Path
):
    with taken_port() as taken:
        names = {**files, "taken": taken}
        words = [str(names.get(word.strip("{}"), word)) for word in case["real"]]
        ended = run_until_it_fails(
            words, tmp_path, case.get("variables"), request=case.get("after_a_request", False)
        )
    expected = classify(case["log"], case["status"])
    found = classify(ended.log, ended.status)
    assert (found.kind, found.summary, found.remedy) == (expected.kind, expected.summary, expected.remedy)
    assert found.line
    assert ended.status == case["status"]
