"""A task as a person writes it, and everything that can be wrong with one."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core.errors import ExitCode, UsageError
from agent.headless.task import MAX_TASK_BYTES, Task, parse_task, protected_globs, read_task_file


def task_of(text: str) -> Task:
    return parse_task(text.encode(), "task.md")


def refusal(raw: str | bytes) -> UsageError:
    with pytest.raises(UsageError) as caught:
        parse_task(raw.encode() if isinstance(raw, str) else raw, "task.md")
    assert caught.value.exit_code == ExitCode.USAGE
    assert "task.md" in caught.value.message
    assert "\n" not in caught.value.message
    return caught.value


def matter(line: str) -> str:
    return f"---\n{line}\n---\nMend it.\n"


def test_plain_text_is_the_whole_task():
    assert task_of("\nMend the *mean*.\n\nThanks.\n") == Task(text="Mend the *mean*.\n\nThanks.")


def test_front_matter_says_how_the_task_is_run():
    text = """---
profile: embedded
check: python -m pytest -q
allow: [shell(make *), "write(docs/**)"]
deny:
  - shell(git push*)
protect: tests/**
max_steps: 30
max_tool_calls: 60
max_seconds: 600.5
---

# Mend the mean

It is wrong.
"""
    assert task_of(text) == Task(
        text="# Mend the mean\n\nIt is wrong.",
        profile="embedded",
        check="python -m pytest -q",
        allow=("shell(make *)", "write(docs/**)"),
        deny=("shell(git push*)",),
        protect=("tests/**",),
        max_steps=30,
        max_tool_calls=60,
        max_seconds=600.5,
    )


@pytest.mark.parametrize("raw", ["---\n---\nMend it.", "---\n\n# only a comment\n---\nMend it."])
def test_empty_front_matter_is_none(raw: str):
    assert task_of(raw) == Task(text="Mend it.")


@pytest.mark.parametrize(
    "raw",
    [
        b"\xef\xbb\xbf---\ncheck: make\n---\nMend it.",
        b"---\r\ncheck: make\r\n---\r\nMend it.\r\n",
        b"---  \ncheck: make\n---\t\nMend it.",
    ],
)
def test_marks_line_ends_and_blanks_of_editors_do_not_matter(raw: bytes):
    assert parse_task(raw, "task.md") == Task(text="Mend it.", check="make")


@pytest.mark.parametrize(
    "text",
    [
        "--- mend it",
        "----\nMend it.\n----",
        "---mend---",
        "Mend it.\n---\ncheck: make\n---",
        " ---\ncheck: make",
    ],
)
def test_text_that_merely_has_dashes_is_text(text: str):
    assert task_of(text) == Task(text=text.strip())


def test_dashes_further_down_belong_to_the_text():
    assert task_of("---\ncheck: make\n---\nOne.\n\n---\n\nTwo.").text == "One.\n\n---\n\nTwo."


def test_a_row_of_more_dashes_does_not_end_the_front_matter():
    assert task_of("---\n# ----\ncheck: make\n---\nMend it.").check == "make"


@pytest.mark.parametrize("text", ["---\ncheck: make\nMend it.", "---", "---\n----\nMend it."])
def test_front_matter_that_is_not_closed_is_said(text: str):
    error = refusal(text)
    assert error.message == "task.md: the front matter is not closed"
    assert "three dashes" in error.hint


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("chek: make", "did you mean 'check'?"),
        ("max_step: 3", "did you mean 'max_steps'?"),
        ("Profile: embedded", "did you mean 'profile'?"),
        (
            "colour: red",
            "the keys are profile, check, allow, deny, protect, max_steps, max_tool_calls, max_seconds",
        ),
        ("3: red", "the keys are"),
        ("true: red", "the keys are"),
    ],
)
def test_an_unknown_key_is_named_with_what_was_meant(line: str, hint: str):
    error = refusal(matter(line))
    assert "unknown key" in error.message
    assert hint in error.hint


@pytest.mark.parametrize(
    ("line", "quoted"), [("check: true", 'check: "true"'), ("profile: 3090", 'profile: "3090"')]
)
def test_a_word_that_yaml_takes_for_something_else_is_shown_in_quotes(line: str, quoted: str):
    assert quoted in refusal(matter(line)).hint


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("check: [make]", "check in the front matter has to be a text"),
        ("check: true", "a text"),
        ("check:", "a text"),
        ("profile: 3090", "a text"),
        ("profile: ' '", "a text"),
        ("allow: 3", "a list of texts"),
        ("allow: [3]", "a list of texts"),
        ("deny: ['']", "a list of texts"),
        ("protect: {a: b}", "a list of texts"),
        ("max_steps: 0", "a whole number of at least 1"),
        ("max_steps: -1", "a whole number of at least 1"),
        ("max_steps: 2.5", "a whole number of at least 1"),
        ("max_steps: true", "a whole number of at least 1"),
        ("max_steps: '5'", "a whole number of at least 1"),
        ("max_tool_calls: 0", "a whole number of at least 1"),
        ("max_seconds: 0", "a number above 0"),
        ("max_seconds: .nan", "a number above 0"),
        ("max_seconds: .inf", "a number above 0"),
        ("max_seconds: soon", "a number above 0"),
    ],
)
def test_a_wrong_value_is_named_with_what_it_has_to_be(line: str, wanted: str):
    assert wanted in refusal(matter(line)).message


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("check: make\nallow: [a", "line 3: the front matter is no YAML"),
        ("a: b: c", "line 2: the front matter is no YAML"),
        ("just words", "has to be lines of `key: value`"),
        ("- check", "has to be lines of `key: value`"),
        ("check: !!python/object:os.system x", "the front matter is no YAML"),
        ("check: 2026-13-45", "has a value that is no YAML"),
        pytest.param("allow: " + "[" * 1500, "front matter", id="deep"),
        ("? [a, b]\n: c", "front matter"),
        ("check: \x07", "front matter"),
    ],
)
def test_front_matter_that_cannot_be_read_is_said(line: str, words: str):
    assert words in refusal(matter(line)).message


@pytest.mark.parametrize("text", ["", " \n\t\n", "---\ncheck: make\n---\n", "\ufeff", "---\n---"])
def test_a_task_without_words_is_refused(text: str):
    error = refusal(text)
    assert error.message == "task.md has no task in it"
    assert "plain words" in error.hint


@pytest.mark.parametrize(
    "raw", [b"\x7fELF\x02\x01\x01\x00", b"caf\xe9", b"a\x00b", "Mend it.".encode("utf-16"), bytes(range(256))]
)
def test_a_binary_file_is_no_task(raw: bytes):
    assert refusal(raw).message == "task.md is not a text file"


def test_a_task_may_not_be_without_end():
    assert "too long, a task may have 200,000 bytes" in refusal("x" * (MAX_TASK_BYTES + 1)).message
    assert len(task_of("x" * MAX_TASK_BYTES).text) == MAX_TASK_BYTES


@settings(deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_a_task_or_refused_in_one_line(text: str):
    said = ""
    try:
        assert task_of(f"---\n{text}").text
    except UsageError as error:
        said = error.message
    assert "\n" not in said


def test_a_task_file_is_read(tmp_path: Path):
    path = tmp_path / "task.md"
    path.write_text(matter("check: make"), encoding="utf-8")
    assert read_task_file(path) == Task(text="Mend it.", check="make")


def test_a_missing_task_file_is_named(tmp_path: Path):
    with pytest.raises(UsageError, match="there is no task file") as caught:
        read_task_file(tmp_path / "tsak.md")
    assert "tsak.md" in caught.value.message
    assert "-p" in caught.value.hint


def test_a_folder_is_no_task_file(tmp_path: Path):
    with pytest.raises(UsageError, match="is a folder, not a task file"):
        read_task_file(tmp_path)


def test_a_file_as_a_folder_is_said(tmp_path: Path):
    (tmp_path / "task.md").write_text("x", encoding="utf-8")
    with pytest.raises(UsageError, match=r"cannot read the task file .*: Not a directory"):
        read_task_file(tmp_path / "task.md" / "more.md")


def test_a_name_that_no_file_can_have_is_said(tmp_path: Path):
    with pytest.raises(UsageError, match="cannot read the task file"):
        read_task_file(tmp_path / ("x" * 5000))


def test_a_file_without_permission_is_said():
    with TemporaryDirectory() as folder, as_nobody(Path(folder)):
        path = Path(folder) / "task.md"
        path.write_text("Mend it.", encoding="utf-8")
        assert read_task_file(path).text == "Mend it."
        path.chmod(stat.S_IWUSR)
        with pytest.raises(UsageError, match="Permission denied"):
            read_task_file(path)


@contextmanager
def as_nobody(folder: Path) -> Iterator[None]:
    """Root may read everything, so it is somebody else for a while, who owns `folder`."""
    user = os.geteuid()
    if user == 0:
        os.chown(folder, 65534, 65534)
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_a_device_without_end_is_not_read_to_its_end():
    with pytest.raises(UsageError, match="/dev/zero is too long"):
        read_task_file(Path("/dev/zero"))


@pytest.mark.parametrize(
    ("name", "text"), [("some.py", "x = 1\n"), ("DATA.JSON", "{}"), ("go.runme", "#!/usr/bin/env runme\n")]
)
def test_a_source_file_is_not_taken_for_a_task(tmp_path: Path, name: str, text: str):
    (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(UsageError, match=rf"{name} is a source file, not a task") as caught:
        read_task_file(tmp_path / name)
    assert f'agent run -p "Explain {tmp_path / name}"' in caught.value.hint
    assert f"agent run - < {tmp_path / name}" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("task", "#!Mend it"),
        ("task.txt", "#!Mend it"),
        ("task.py", "---\nmax_steps: 3\n---\n#!Mend it"),
        ("v1.2 notes", "#!Mend it"),
    ],
)
def test_a_text_is_a_task_whatever_is_in_it(tmp_path: Path, name: str, text: str):
    (tmp_path / name).write_text(text, "utf-8")
    assert read_task_file(tmp_path / name).text == "#!Mend it"


def globs_for(text: str, **more: Any) -> tuple[str, ...]:
    return protected_globs(Task(text=text, **more))


@pytest.mark.parametrize(
    "text",
    [
        "Fix `booking.py`. A test in `test_booking.py` shows it.",
        "Add a function so that the tests pass.",
        "Write the module scoreboard.py until all tests pass.",
        "Write `scoreboard.py` with one class. `test_scoreboard.py` has the tests.",
        "Add `mean` to calc.py to make the tests pass.",
        "Extend the parser. The tests are in tests/.",
        "Mend it.",
    ],
)
def test_with_a_check_the_tests_are_protected(text: str):
    assert "**/test_*" in globs_for(text, check="make test")


@pytest.mark.parametrize(
    "text",
    [
        "Add a function `longest_word` to `text_stats.py` and a test for it.",
        "Write tests for calc.py.",
        "Fix the bug in calc.py and add a regression test.",
        "Please add a function to the module and\na test for it.",
        "Update the tests to the new name.",
        "Adapt `test_money.py`: extend its tests.",
        "Rename `get_rate` to `euro_rate` everywhere.",
        "This needs renaming.",
    ],
)
def test_a_task_that_asks_for_tests_may_change_them(text: str):
    assert globs_for(text, check="make test") == ()


def test_without_a_check_nothing_is_protected_by_itself():
    assert globs_for("Mend it.") == ()


def test_what_the_task_protects_is_protected_instead():
    assert globs_for("Mend it.", check="make", protect=("docs/**",)) == ("docs/**",)
    assert globs_for("Add a test.", protect=("docs/**",)) == ("docs/**",)


@pytest.mark.parametrize(
    "sentence",
    [
        "Leave `accept.py` as it is.",
        "Do not touch accept.py, please.",
        "Fix it without changing accept.py.",
        "You must not edit\n`accept.py`.",
    ],
)
def test_a_file_that_the_task_wants_left_alone_is_protected(sentence: str) -> None:
    task = Task(text=f"Add a function and a test for it. {sentence}", check="make test")
    assert protected_globs(task) == ("accept.py",)


def test_a_file_named_in_another_sentence_is_not_protected() -> None:
    task = Task(
        text="Do not change the interface. Add a function to a.py and a test for it.", check="make test"
    )
    assert protected_globs(task) == ()


def test_an_empty_check_is_told_with_an_example():
    assert "`check: python -m pytest -q`" in refusal(matter("check:")).hint
