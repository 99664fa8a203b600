"""New skills, copies and their check."""

from pathlib import Path

import pytest

from agent.core.errors import UsageError
from agent.skills.parse import load_skill
from agent.skills.place import add, create
from agent.skills.validate import problems_of
from tests.skills.shelf import write_skill

BUNDLED = sorted(path.parent for path in (Path(__file__).parents[2] / "skills").glob("*/SKILL.md"))


def test_new_skill_is_a_good_one(tmp_path: Path):
    path = create("my-skill", tmp_path / "skills", 'Says "hello": always')
    assert problems_of(path.parent) == []
    assert load_skill(path.parent, "user").description == 'Says "hello": always'


@pytest.mark.parametrize("name", ["", "../up", "Big", "a b", "x" * 65, "-x"])
def test_new_skill_needs_a_good_name(tmp_path: Path, name: str):
    with pytest.raises(UsageError, match="name"):
        create(name, tmp_path)


def test_nothing_is_written_over(tmp_path: Path):
    create("one", tmp_path)
    with pytest.raises(UsageError, match="there already"):
        create("one", tmp_path)
    with pytest.raises(UsageError, match="there already"):
        add(tmp_path / "one", tmp_path)


def test_copy_has_all_files_and_leaves_nothing_beside(tmp_path: Path):
    source = write_skill(tmp_path / "elsewhere/one")
    (source / "scripts").mkdir()
    (source / "scripts/run.sh").write_text("#!/bin/sh\n")
    (source / "scripts/run.sh").chmod(0o755)
    target = add(source / "SKILL.md", tmp_path / "skills")
    assert (target / "scripts/run.sh").stat().st_mode & 0o100
    assert [path.name for path in (tmp_path / "skills").iterdir()] == ["one"]


def test_skill_with_a_link_out_of_it_is_not_copied(tmp_path: Path):
    source = write_skill(tmp_path / "elsewhere/one")
    (source / "key").symlink_to("/etc/passwd")
    with pytest.raises(UsageError, match="no file of the skill"):
        add(source, tmp_path / "skills")
    assert list((tmp_path / "skills").iterdir()) == []


def test_what_is_no_skill_is_not_copied(tmp_path: Path):
    with pytest.raises(UsageError, match="no skill"):
        add(tmp_path, tmp_path / "skills")


@pytest.mark.parametrize("folder", BUNDLED, ids=lambda folder: folder.name)
def test_bundled_skill_is_good_and_short(folder: Path):
    assert problems_of(folder) == []
    assert len((folder / "SKILL.md").read_text("utf-8")) < 2500


def test_all_bundled_skills_are_there():
    assert len(BUNDLED) >= 6


def test_check_finds_what_the_specification_does_not_allow(tmp_path: Path):
    text = "---\nname: Other\ndescription: Does it.\ncolour: red\n---\nSee [more](more.md).\n"
    problems = "\n".join(problems_of(write_skill(tmp_path / "one", text)))
    assert "small letters" in problems
    assert "colour" in problems
    assert "more.md" in problems
