"""What the command line asks for, laid over what the task file says."""

from pathlib import Path

import pytest

from agent.app.run.request import RunRequest, resolve_directory, resolve_task
from agent.core.errors import UsageError

TASK = """---
profile: mine
check: make
allow: [shell(ls *)]
max_steps: 3
max_tool_calls: 7
max_seconds: 60
---
Do it
"""


@pytest.fixture
def task_file(tmp_path: Path) -> str:
    path = tmp_path / "task.md"
    path.write_text(TASK, "utf-8")
    return str(path)


def test_front_matter_holds_where_no_flag_is_given(task_file: str):
    task = resolve_task(RunRequest(task=task_file, prompt=None))
    assert (task.profile, task.check, task.max_steps, task.max_seconds) == ("mine", "make", 3, 60)
    assert task.max_tool_calls == 7


def test_flags_replace_the_front_matter_and_rules_add_up(task_file: str):
    request = RunRequest(
        task=task_file,
        prompt=None,
        profile="other",
        check="make all",
        allow=("shell(cat *)",),
        max_steps=5,
        max_tool_calls=9,
        max_seconds=1.5,
    )
    task = resolve_task(request)
    assert (task.profile, task.check, task.max_steps, task.max_seconds) == ("other", "make all", 5, 1.5)
    assert task.max_tool_calls == 9
    assert task.allow == ("shell(ls *)", "shell(cat *)")


@pytest.mark.parametrize("steps", [0, -1])
def test_refuses_a_limit_that_allows_no_step(steps: int):
    with pytest.raises(UsageError, match="at least 1"):
        resolve_task(RunRequest(task=None, prompt="x", max_steps=steps))


@pytest.mark.parametrize("calls", [0, -1])
def test_refuses_a_limit_that_allows_no_tool_call(calls: int):
    with pytest.raises(UsageError, match="--max-tool-calls has to be at least 1") as raised:
        resolve_task(RunRequest(task=None, prompt="x", max_tool_calls=calls))
    assert "limits.max_tool_calls" in raised.value.hint


@pytest.mark.parametrize("check", ["", "  "])
def test_refuses_a_check_that_checks_nothing(check: str):
    with pytest.raises(UsageError, match="--check is empty"):
        resolve_task(RunRequest(task=None, prompt="x", check=check))


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("inf"), float("nan")])
def test_refuses_seconds_that_are_no_limit(seconds: float):
    with pytest.raises(UsageError, match="above 0"):
        resolve_task(RunRequest(task=None, prompt="x", max_seconds=seconds))


def test_link_to_a_folder_means_the_folder(tmp_path: Path):
    (tmp_path / "link").symlink_to(tmp_path)
    assert resolve_directory(RunRequest(task=None, prompt="x", directory=tmp_path / "link")) == tmp_path


def test_links_in_a_circle_are_no_folder(tmp_path: Path):
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(UsageError, match="circle"):
        resolve_directory(RunRequest(task=None, prompt="x", directory=tmp_path / "circle"))
