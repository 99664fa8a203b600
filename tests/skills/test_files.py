"""Files of a skill are readable, others are not."""

from pathlib import Path

import pytest

from agent.skills.files import LARGEST_FILE_BYTES, files_of, read_file
from agent.skills.parse import Skill, SkillError, load_skill
from tests.skills.shelf import write_skill


@pytest.fixture
def skill(tmp_path: Path) -> Skill:
    folder = write_skill(tmp_path / "skills/one")
    (folder / "references").mkdir()
    (folder / "references/api.md").write_text("The API.\r\n")
    (tmp_path / "secret").write_text("secret")
    return load_skill(folder, "user")


def test_file_below_the_folder_is_read(skill: Skill):
    assert read_file(skill, "./references/api.md") == "The API.\n"


@pytest.mark.parametrize("name", ["../../secret", "references/../../../secret", "/etc/passwd", "link"])
def test_file_outside_is_refused(skill: Skill, tmp_path: Path, name: str):
    (skill.folder / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(SkillError, match="outside"):
        read_file(skill, name)


def test_wrong_name_lists_the_files(skill: Skill):
    with pytest.raises(SkillError, match=r"references/api\.md"):
        read_file(skill, "api.md")


@pytest.mark.parametrize("name", ["", ".", "references", "a\0b", "x" * 5000])
def test_what_is_no_file_is_an_error_in_words(skill: Skill, name: str):
    with pytest.raises(SkillError):
        read_file(skill, name)


def test_big_file_is_cut_and_says_so(skill: Skill):
    (skill.folder / "big.txt").write_text("x" * (LARGEST_FILE_BYTES + 5))
    text = read_file(skill, "big.txt")
    assert len(text) < LARGEST_FILE_BYTES + 100
    assert "left out" in text


def test_program_is_no_text(skill: Skill):
    (skill.folder / "tool").write_bytes(b"\x7fELF\0\0")
    with pytest.raises(SkillError, match="no text"):
        read_file(skill, "tool")


def test_listing_leaves_out_the_skill_itself_and_hidden_files(skill: Skill):
    (skill.folder / ".hidden").write_text("")
    assert files_of(skill) == ["references/api.md"]
