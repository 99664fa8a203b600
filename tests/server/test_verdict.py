"""What a person is told about servers that are healthy but wrong; the cases are in tests/cases/servers."""

import tomllib
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest

from agent.server.profile import Profile
from agent.server.verdict import findings_after_start

FILE = Path(__file__).parents[1] / "cases" / "servers" / "verdicts.toml"
CASES = tomllib.loads(FILE.read_text("utf-8"))["case"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_person_is_told_what_is_wrong_and_what_to_do(case: dict[str, Any]):
    table = {"name": "trial", "engine": "llama-server", "target": {"file": "t.gguf"}, **case["profile"]}
    found = findings_after_start(
        Profile.model_validate(table), case["log"], case.get("props"), case.get("slots"), case.get("drafted")
    )
    assert [list(astuple(one)) for one in found] == case["told"]


def test_first_lines_of_many_unknown_errors_are_shown_once_each():
    profile = Profile.model_validate({"name": "p", "engine": "llama-server", "target": {"file": "t.gguf"}})
    log = "\n".join(f"0.1 E odd: number {number // 2}" for number in range(20))
    found = findings_after_start(profile, log, None, None, None)
    assert [one.message for one in found] == [f"the server reports: odd: number {n}" for n in range(3)]


def test_port_that_would_wrap_around_is_refused_by_the_profile():
    table = {"name": "p", "engine": "llama-server", "target": {"file": "t.gguf"}, "port": 99999}
    with pytest.raises(ValueError, match="less than or equal to 65535"):
        Profile.model_validate(table)
