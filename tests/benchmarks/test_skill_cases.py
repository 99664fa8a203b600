"""The judges of the benchmark of skills: they agree to what is right, and say what is missing elsewhere."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent.skills.discover import discover, places
from benchmarks.skill_cases import CASES, Case, Done, case_named, lay_out, write_files
from benchmarks.skills import Attempt, table

ROOT = Path(__file__).parents[2]
INITIALS = "\n\ndef initials(name):\n    return ''.join(word[0] for word in name.upper().split())\n"
TEST = "\n\ndef test_it():\n    from names import initials\n\n    assert initials('ada lovelace') == 'AL'\n"


def judged(case: Case, folder: Path, **more: Any) -> str:
    values: dict[str, Any] = {
        "answer": "",
        "calls": (),
        "diffs": (),
        "touched": (),
        "variables": {
            **os.environ,
            "AGENT_CONFIG_HOME": str(folder.parent / "config"),
            "PYTHONPATH": str(ROOT),
        },
    }
    return case.judge(Done(folder=folder, **{**values, **more}))


def laid_out(skill: str, tmp_path: Path) -> tuple[Case, Path]:
    case, folder = case_named(skill), tmp_path / "work"
    write_files(case.files, folder)
    return case, folder


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text("utf-8") + text, "utf-8")


def test_every_bundled_skill_has_a_case():
    bundled = discover(places(ROOT, ROOT, (), ROOT / "skills")).skills
    assert sorted(case.skill for case in CASES) == sorted(skill.name for skill in bundled)


@pytest.mark.parametrize(
    ("skill", "answer", "missing"),
    [
        ("write-a-commit-message", "Reject discounts out of range", ""),
        ("write-a-commit-message", "fix: check the percent of a discount\n\nWhy.", ""),
        ("write-a-commit-message", "Added a check of discounts", "no order"),
        ("write-a-commit-message", "Add things", "does not say what"),
        ("write-a-commit-message", "Reject " + "x" * 60, "characters"),
        ("write-a-commit-message", "", "no answer"),
        ("review-a-diff", "figures.py:6: average([]) divides by zero", ""),
        ("review-a-diff", "average is fine", "empty list"),
        ("review-a-diff", "An empty list is a problem", "place"),
        ("explain-a-repository", "Finds notes. notes/main.py:8 asks notes/store.py", ""),
        (
            "explain-a-repository",
            "Finds notes: notes/main.py, notes/store.py, notes/app.py",
            "not there: notes/app.py",
        ),
        ("explain-a-repository", "main.py finds notes, which store.py keeps in notes.txt", ""),
        ("explain-a-repository", "It searches notes in notes/main.py", "1 of 3"),
    ],
)
def test_an_answer_is_judged_by_what_it_says(skill: str, answer: str, missing: str, tmp_path: Path):
    case, folder = laid_out(skill, tmp_path)
    said = judged(case, folder, answer=answer)
    assert missing in said
    assert bool(missing) == bool(said)
    assert judged(case, folder, answer=answer, touched=("a.py",))


def test_tests_count_when_they_fail_without_the_function_and_came_first(tmp_path: Path):
    case, folder = laid_out("write-tests-first", tmp_path)
    assert judged(case, folder) == "no test of the new function"
    append(folder / "test_names.py", TEST)
    assert judged(case, folder) == "the tests do not pass"
    append(folder / "names.py", INITIALS)
    assert judged(case, folder, diffs=("names.py",)) == "names.py was written first"
    assert judged(case, folder, diffs=("test_names.py", "names.py")) == ""


def test_a_test_that_shows_nothing_does_not_count(tmp_path: Path):
    case, folder = laid_out("write-tests-first", tmp_path)
    append(folder / "test_names.py", "\n\ndef test_initials():\n    pass\n")
    append(folder / "names.py", INITIALS)
    assert judged(case, folder) == "the tests pass without the function as well"


def test_a_server_counts_when_it_answers(tmp_path: Path):
    case, folder = laid_out("add-an-mcp-server", tmp_path)
    assert judged(case, folder, answer="I added it.") == "no server named time answers"


def test_a_profile_counts_when_it_was_measured(tmp_path: Path):
    case, folder = laid_out("speed-up-a-server-profile", tmp_path)
    measured = (("shell", {"command": "agent bench"}),)
    assert judged(case, folder) == "it measured nothing"
    assert judged(case, folder, calls=measured) == "it tried no other setting"
    profiles = tmp_path / "config" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / "faster.toml").write_text("batch = 256\n", "utf-8")
    assert judged(case, folder, calls=measured) == "it reports no speeds"
    assert judged(case, folder, calls=measured, answer="before 20 tok/s, after 25 tok/s") == ""


def test_changes_of_a_case_are_there_and_staged(tmp_path: Path):
    case = case_named("write-a-commit-message")
    lay_out(case, tmp_path / "work")
    command = ["git", "status", "--porcelain"]
    shown = subprocess.run(command, cwd=tmp_path / "work", check=True, capture_output=True, text=True).stdout
    assert shown == "M  prices.py\n"


def test_the_table_counts_by_skill():
    values = {"exit_code": 0, "reason": "done", "steps": 1, "seconds": 1.0, "answer": "", "calls": ()}
    attempts = [Attempt(skill="review-a-diff", missing=missing, **values) for missing in ("", "x", "x")]
    assert table(attempts).splitlines()[2:] == ["| review-a-diff | 1/3 | x |"]
