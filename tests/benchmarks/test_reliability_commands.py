"""The comparison of the permission rules with bash, in small, and that it would notice a bypass."""

import random
from pathlib import Path

import pytest

from agent.permissions.gate import decide
from agent.permissions.rules import parse_rules
from benchmarks.reliability import attacks
from benchmarks.reliability.commands import damaged, lines, rules_against, run


@pytest.mark.timeout(120)
def test_no_generated_line_gets_past_the_rules():
    found = run(150, seed=7)
    assert found["examples"] == []
    assert found["failures"] == 0
    assert found["understood"] > 30
    assert found["started something"] > 15


def test_no_line_of_the_attack_set_is_allowed():
    found = attacks.run(60, seed=1)
    assert found["examples"] == []
    assert found["judgements"] > 180


def test_the_judge_of_the_attack_set_sees_a_bypass(tmp_path: Path):
    assert attacks.is_allowed("rm -rf build", tmp_path, "ask", parse_rules(allow=["*"]))


def test_the_lines_are_the_same_for_the_same_seed():
    assert list(lines(50, 3)) == list(lines(50, 3))
    assert list(lines(50, 3)) != list(lines(50, 4))


def test_damage_changes_a_line():
    source = random.Random(1)
    assert any(damaged("p1 a", source) != "p1 a" for _ in range(3))


def test_the_rules_of_the_comparison_deny_one_program_and_allow_the_others(tmp_path: Path):
    rules = rules_against("p3")
    verdicts = {
        line: decide(
            "shell", "execute", {"command": line}, workspace=tmp_path, mode="auto", rules=rules, headless=True
        ).verdict
        for line in ("p1 x", "p3", "p1 && p3 x", "p1 $(p3)")
    }
    assert verdicts == {"p1 x": "allow", "p3": "deny", "p1 && p3 x": "deny", "p1 $(p3)": "deny"}
