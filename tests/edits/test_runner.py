"""Formatters and checks after an edit: what comes of them, and of those that fail."""

import asyncio
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent.app.turns.edited import write_back
from agent.edits.runner import Checked, EditRunner
from agent.edits.spec import formatter_only, steps_from
from tests.patience import limits


@pytest.fixture
def notices() -> list[str]:
    return []


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path.resolve()


def runner(place: Path, notices: list[str], *entries: Any, **options: Any) -> EditRunner:
    return EditRunner(
        steps=options.pop("steps", steps_from(entries)),
        workspace=place,
        environment=lambda: os.environ,
        notify=notices.append,
        write=partial(write_back, place),
        **options,
    )


def entry(**table: Any) -> dict[str, Any]:
    return {"glob": "*.txt", **table}


def file(place: Path, text: str = "one\n") -> Path:
    path = place / "a.txt"
    path.write_text(text)
    return path


async def formatted(place: Path, notices: list[str], command: str, text: str = "one\n", **table: Any) -> Path:
    path = file(place, text)
    await runner(place, notices, entry(format=command, **table)).format(path, is_new=False)
    return path


def lines_of(checked: list[Checked]) -> list[str]:
    return [found.text for check in checked for found in check.findings]


async def test_formatter_changes_the_file(place: Path, notices: list[str]):
    edits = runner(place, notices, entry(format="sed -i s/one/ONE/ {file}"))
    path = file(place)
    assert (await edits.format(path, is_new=False)).by == ("sed -i s/one/ONE/",)
    assert path.read_text() == "ONE\n"
    assert (await edits.format(path, is_new=False)).by == ()
    assert notices == []


async def test_files_of_other_names_and_outside_are_left_alone(place: Path, notices: list[str]):
    edits = runner(place, notices, entry(format="touch ran; : {file}", check="touch ran"))
    (place / "a.md").write_text("x")
    for path in (place / "a.md", place.parent / "a.txt"):
        await edits.before(path)
        await edits.format(path, is_new=False)
        await edits.check(path, range(1, 2))
    assert not (place / "ran").exists()


@pytest.mark.parametrize(
    "command",
    [
        "rm {file}",
        ": > {file}",
        "rm {file}; mkdir {file}",
        "printf half > {file}; kill -9 $$",
    ],
)
async def test_formatter_that_breaks_the_file_is_undone(place: Path, notices: list[str], command: str):
    path = file(place)
    path.chmod(0o750)
    edits = runner(place, notices, entry(format=command))
    formatted = await edits.format(path, is_new=False)
    if path.is_dir():
        assert "cannot be put back" in notices[0]
        return
    assert formatted.by == ()
    assert path.read_text() == "one\n"
    assert path.stat().st_mode & 0o777 == 0o750
    assert "has broken a.txt" in notices[0]


async def test_formatter_that_hangs_is_ended_and_undone_and_left_out_after_three_times(
    place: Path, notices: list[str]
):
    path, runs = file(place), place / "runs"
    for seconds in limits(0.2):
        notices.clear()
        runs.write_text("")
        hangs = entry(format="echo x >> {file}; echo . >> runs; sleep 60", seconds=seconds)
        edits = runner(place, notices, hangs)
        for _ in range(5):
            await edits.format(path, is_new=False)
        assert path.read_text() == "one\n"
        assert sum(f"did not end within {seconds:g} s" in notice for notice in notices) == 3
        assert sum("left out from now on" in notice for notice in notices) == 1
        if runs.read_text() == ".\n" * 3:
            break
    assert runs.read_text() == ".\n" * 3


async def test_cancelled_formatter_leaves_the_file_as_the_edit_made_it(place: Path, notices: list[str]):
    os.mkfifo(place / "begun")
    path = file(place)
    edits = runner(place, notices, entry(format="printf x > {file}; echo > begun; sleep 60", seconds=60))
    work = asyncio.ensure_future(edits.format(path, is_new=False))
    await asyncio.to_thread((place / "begun").read_text)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert path.read_text() == "one\n"


async def test_missing_program_is_told_once_whatever_it_was_to_do(place: Path, notices: list[str]):
    edits = runner(place, notices, entry(format="no-such-tool {file}", check="no-such-tool --check {file}"))
    path = file(place)
    for _ in range(3):
        await edits.before(path)
        await edits.format(path, is_new=False)
        assert await edits.check(path, range(1, 2)) == []
    assert len(notices) == 1
    assert "cannot be started" in notices[0]
    assert "not found" in notices[0]


async def test_formatter_that_fails_is_told_once_and_spoils_nothing(place: Path, notices: list[str]):
    edits = runner(place, notices, entry(format="echo no such option >&2; exit 2; : {file}"))
    path = file(place)
    for _ in range(3):
        assert (await edits.format(path, is_new=False)).findings == ()
    assert len(notices) == 1
    assert "failed (exit code 2): no such option" in notices[0]


async def test_formatter_that_ends_badly_and_has_changed_the_file_is_believed(
    place: Path, notices: list[str]
):
    path = await formatted(place, notices, "echo two >> {file}; exit 1")
    assert path.read_text() == "one\ntwo\n"


async def test_formatter_that_finds_a_mistake_tells_it_once(place: Path, notices: list[str]):
    edits = runner(place, notices, entry(format="echo {file}:1:1: expected package; exit 1"))
    path = file(place)
    assert [found.line for found in (await edits.format(path, is_new=False)).findings] == [1]
    assert (await edits.format(path, is_new=False)).findings == ()
    assert notices == []


async def test_formatter_of_a_project_leaves_files_alone_that_were_not_formatted(
    place: Path, notices: list[str]
):
    (place / "ruff").write_text(
        '#!/bin/sh\ncase "$*" in *--check*) grep -q tidy a.py;; *) echo "# tidy" >> a.py;; esac\n'
    )
    (place / "ruff").chmod(0o755)
    edits = runner(place, notices, steps=(formatter_only("ruff"),), local_programs=(str(place),))
    path = place / "a.py"
    path.write_text("messy\n")
    await edits.before(path)
    assert (await edits.format(path, is_new=False)).by == ()
    path.write_text("tidy\n")
    await edits.before(path)
    assert (await edits.format(path, is_new=False)).by == ("ruff format",)
    assert notices == []


async def test_only_new_findings_are_told(place: Path, notices: list[str]):
    edits = runner(place, notices, entry(check="! grep -n bad {file} /dev/null"))
    path = file(place, "fine\nbad old\n")
    await edits.before(path)
    path.write_text("more\nfine\nbad old\nbad new\n")
    assert lines_of(await edits.check(path, range(4, 5))) == ["a.txt:4:bad new"]
    await edits.before(path)
    path.write_text("bad new\nbad old\n")
    assert await edits.check(path, range(1, 3)) == []


async def test_check_is_not_run_again_for_a_content_that_it_has_seen(place: Path, notices: list[str]):
    edits = runner(place, notices, entry(check="echo . >> runs; : {file}"))
    path = file(place)
    await edits.before(path)
    path.write_text("two\n")
    await edits.check(path, range(1, 2))
    await edits.before(path)
    assert (place / "runs").read_text() == ".\n" * 2
    path.write_text("somebody else\n")
    await edits.before(path)
    assert (place / "runs").read_text() == ".\n" * 3


async def test_new_file_has_no_old_findings(place: Path, notices: list[str]):
    edits = runner(place, notices, entry(check="! grep -n bad {file} /dev/null"))
    await edits.before(place / "a.txt")
    path = file(place, "bad\n")
    assert lines_of(await edits.check(path, range(1, 2))) == ["a.txt:1:bad"]


async def test_check_of_the_whole_project_tells_of_other_files_too(place: Path, notices: list[str]):
    edits = runner(place, notices, entry(check="! grep -rn bad . --include=*.txt"))
    (place / "b.txt").write_text("fine\n")
    path = file(place)
    await edits.before(path)
    (place / "b.txt").write_text("bad\n")
    assert lines_of(await edits.check(path, range(1, 2))) == ["./b.txt:1:bad"]
    assert await edits.check(path, range(1, 2)) == []


async def test_what_a_check_prints_and_passes_with_is_nothing(place: Path, notices: list[str]):
    edits = runner(place, notices, entry(check="echo {file}:1:1: warning"))
    path = file(place)
    await edits.before(path)
    assert await edits.check(path, range(1, 2)) == []


async def test_check_that_cannot_work_is_told_to_the_person_and_not_to_the_model(
    place: Path, notices: list[str]
):
    edits = runner(place, notices, entry(check="echo bad configuration >&2; exit 2; : {file}"))
    path = file(place)
    await edits.before(path)
    for text in ("two\n", "three\n"):
        path.write_text(text)
        assert await edits.check(path, range(1, 2)) == []
    assert len(notices) == 1
    assert "failed (exit code 2): bad configuration" in notices[0]


async def test_check_that_hung_before_the_edit_makes_nothing_look_new(place: Path, notices: list[str]):
    command = "test -e slow && { rm slow; sleep 60; }; ! grep -n bad {file} /dev/null"
    for seconds in limits(1.0):
        edits = runner(place, notices, entry(check=command, seconds=seconds))
        (place / "slow").touch()
        path = file(place, "bad\n")
        await edits.before(path)
        assert await edits.check(path, range(1, 2)) == []
        path.write_text("bad\nbad too\n")
        found = lines_of(await edits.check(path, range(2, 3)))
        if found:
            break
    assert found == ["a.txt:2:bad too"]


async def test_flood_of_findings_is_bounded(place: Path, notices: list[str]):
    edits = runner(place, notices, entry(check="yes {file}:1:1: bad | head -c 20000000; exit 1"))
    await edits.before(place / "a.txt")
    path = file(place)
    assert 0 < len(lines_of(await edits.check(path, range(1, 2)))) <= 500


async def test_folder_that_is_gone_is_told(place: Path, notices: list[str]):
    edits = runner(place / "gone", notices, entry(check="true {file}"))
    await edits.before(place / "gone" / "a.txt")
    await edits.check(place / "gone" / "a.txt", range(1, 2))
    assert "cannot be started" in notices[0]
    assert len(notices) == 1
