"""A skill of somebody else is loaded with a warning, or skipped with a reason, and never breaks anything."""

import os
from pathlib import Path

import pytest

from agent.skills.parse import LARGEST_FILE_BYTES, SkillError, body_of, load_skill
from tests.skills.shelf import write_skill


def head(*lines: str) -> str:
    return "\n".join(["---", *lines, "---", "Do it.", ""])


def test_good_skill_has_no_warning(tmp_path: Path):
    skill = load_skill(write_skill(tmp_path / "good"), "user")
    assert (skill.name, skill.description, skill.warnings) == ("good", "Does it.", ())
    assert body_of(skill) == "Body of good."


@pytest.mark.parametrize(
    ("name", "loaded"),
    [
        ("other", "other"),
        ("With Capitals", "with-capitals"),
        ("double--hyphen", "double-hyphen"),
        ("-edge-", "edge"),
        ("x" * 70, "x" * 64),
        ('"\\x1b[31mred\\x07"', "31mred"),
        ("42", "42"),
        ("[a, list]", "folder"),
    ],
)
def test_wrong_name_is_a_warning(tmp_path: Path, name: str, loaded: str):
    skill = load_skill(
        write_skill(tmp_path / "folder", head(f"name: {name}", "description: Does it.")), "user"
    )
    assert skill.name == loaded
    assert len(skill.warnings) == 1
    assert skill.warnings[0].isprintable()


def test_missing_name_is_the_folders(tmp_path: Path):
    skill = load_skill(write_skill(tmp_path / "My Folder", head("description: Does it.")), "user")
    assert skill.name == "my-folder"
    assert skill.warnings


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (head("name: folder"), "no description"),
        (head("name: folder", "description:"), "no description"),
        (head("name: folder", "description: '  '"), "no description"),
        (head("name: folder", "description: {a: b}"), "no description"),
        ("Just text.\n", "no front matter"),
        ("", "no front matter"),
        (head("name: [folder", "description: Does it."), "no YAML"),
        (head("name: folder", "\tdescription: Does it."), "no YAML"),
        (head("- a", "- b"), "key: value"),
        ("---\nname: folder\ndescription: Does it.\n", "not closed"),
        (head("name: folder", "description: Does it.", "date: 2026-13-45"), "no YAML"),
        (head("name: folder", "description: " + "[" * 5000), "no YAML"),
    ],
)
def test_what_cannot_be_understood_is_skipped_with_a_reason(tmp_path: Path, text: str, reason: str):
    with pytest.raises(SkillError, match=reason):
        load_skill(write_skill(tmp_path / "folder", text), "user")


def test_mark_and_line_ends_of_other_systems_are_read(tmp_path: Path):
    text = b"\xef\xbb\xbf" + head("name: folder", "description: Does it.").replace("\n", "\r\n").encode()
    skill = load_skill(write_skill(tmp_path / "folder", text), "user")
    assert skill.warnings == ()
    assert body_of(skill) == "Do it."


def test_colon_in_a_description_is_mended_with_a_warning(tmp_path: Path):
    text = head("name: folder", 'description: Use this when: the user says "go" \\ stop')
    skill = load_skill(write_skill(tmp_path / "folder", text), "user")
    assert skill.description == 'Use this when: the user says "go" \\ stop'
    assert "quotes" in skill.warnings[0]


def test_description_over_several_lines_becomes_one(tmp_path: Path):
    text = head("name: folder", "description: >", "  Does it", "  well.")
    assert load_skill(write_skill(tmp_path / "folder", text), "user").description == "Does it well."


def test_invisible_characters_are_taken_out(tmp_path: Path):
    text = head("name: folder", "description: Does\u202e it\U000e0041.") + "\x1b]0;title\x07 text"
    skill = load_skill(write_skill(tmp_path / "folder", text), "user")
    assert skill.description == "Does it."
    assert "\x1b" not in body_of(skill)


def test_yaml_aliases_do_not_grow(tmp_path: Path):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    with pytest.raises(SkillError, match="no description"):
        load_skill(write_skill(tmp_path / "folder", head(*lines, "description: *a11")), "user")


def test_huge_file_is_skipped(tmp_path: Path):
    text = head("name: folder", "description: Does it.") + "x" * LARGEST_FILE_BYTES
    with pytest.raises(SkillError, match="bigger"):
        load_skill(write_skill(tmp_path / "folder", text), "user")


def test_binary_file_is_skipped(tmp_path: Path):
    with pytest.raises(SkillError, match="no text"):
        load_skill(write_skill(tmp_path / "folder", b"---\0\1\2"), "user")


def test_bytes_that_are_no_utf8_are_replaced(tmp_path: Path):
    text = head("name: folder", "description: Does it.").encode() + b"\xff"
    assert "Do it." in body_of(load_skill(write_skill(tmp_path / "folder", text), "user"))


def test_link_to_a_file_outside_is_not_followed(tmp_path: Path):
    (tmp_path / "secret.md").write_text(head("name: folder", "description: Does it."))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "SKILL.md").symlink_to(tmp_path / "secret.md")
    with pytest.raises(SkillError, match="outside"):
        load_skill(tmp_path / "folder", "user")


def test_pipe_instead_of_a_file_does_not_hang(tmp_path: Path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "folder" / "SKILL.md")
    with pytest.raises(SkillError, match=r"no SKILL\.md"):
        load_skill(tmp_path / "folder", "user")


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("Bash(git:*) Read", ("Bash(git:*)", "Read")),
        ("Bash(git add:*), Edit", ("Bash(git add:*)", "Edit")),
        ("[Read, 'Bash(npm run test)']", ("Read", "Bash(npm run test)")),
        ("7", ()),
    ],
)
def test_allowed_tools_may_be_words_or_a_list(tmp_path: Path, written: str, words: tuple[str, ...]):
    text = head("name: folder", "description: Does it.", f"allowed-tools: {written}")
    assert load_skill(write_skill(tmp_path / "folder", text), "user").allowed_tools == words
