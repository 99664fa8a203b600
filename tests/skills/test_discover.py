"""Where skills are looked for, and which one counts."""

from pathlib import Path

from agent.skills.discover import Found, discover, places
from tests.skills.shelf import write_skill


def find(workspace: Path, root: Path, *personal: Path, bundled: Path | None = None) -> Found:
    return discover(places(workspace, root, personal, bundled))


def test_skills_of_all_places_are_found(tmp_path: Path):
    root = tmp_path / "repo"
    for at, name in enumerate([".agents/skills", ".agent/skills", ".claude/skills"]):
        write_skill(root / name / f"skill-{at}")
    write_skill(tmp_path / "own" / "mine")
    write_skill(tmp_path / "shipped" / "theirs")
    found = find(root, root, tmp_path / "own", bundled=tmp_path / "shipped")
    assert [(skill.name, skill.scope) for skill in found.skills] == [
        ("skill-0", "project"),
        ("skill-1", "project"),
        ("skill-2", "project"),
        ("mine", "user"),
        ("theirs", "bundled"),
    ]


def test_nearest_of_the_same_name_counts(tmp_path: Path):
    root = tmp_path / "repo"
    write_skill(root / "sub/.agents/skills/same", description="Near.")
    write_skill(root / ".agents/skills/same", description="Far.")
    write_skill(tmp_path / "own/same", description="Mine.")
    found = find(root / "sub", root, tmp_path / "own")
    assert [skill.description for skill in found.skills] == ["Near."]
    assert [skill.description for skill in found.shadowed] == ["Far.", "Mine."]


def test_folders_above_the_repository_do_not_count(tmp_path: Path):
    write_skill(tmp_path / ".agents/skills/outer")
    (tmp_path / "repo").mkdir()
    assert find(tmp_path / "repo", tmp_path / "repo").skills == ()


def test_broken_skill_is_named_and_the_others_stay(tmp_path: Path):
    write_skill(tmp_path / ".agents/skills/bad", "---\nname: [\n---\n")
    write_skill(tmp_path / ".agents/skills/good")
    found = find(tmp_path, tmp_path)
    assert [skill.name for skill in found.skills] == ["good"]
    assert [skipped.folder.name for skipped in found.skipped] == ["bad"]


def test_folder_that_is_a_link_out_of_the_project_is_left_out(tmp_path: Path):
    write_skill(tmp_path / "elsewhere/skill")
    folder = tmp_path / "repo/.agents/skills"
    folder.mkdir(parents=True)
    (folder / "skill").symlink_to(tmp_path / "elsewhere/skill")
    found = find(tmp_path / "repo", tmp_path / "repo")
    assert found.skills == ()
    assert "link" in found.skipped[0].reason


def test_own_folder_may_be_a_link(tmp_path: Path):
    write_skill(tmp_path / "elsewhere/skill")
    (tmp_path / "own").mkdir()
    (tmp_path / "own/skill").symlink_to(tmp_path / "elsewhere/skill")
    assert [skill.name for skill in find(tmp_path / "work", tmp_path / "work", tmp_path / "own").skills] == [
        "skill"
    ]


def test_the_same_folder_under_two_names_is_one_skill(tmp_path: Path):
    write_skill(tmp_path / ".agents/skills/one")
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/skills").symlink_to(tmp_path / ".agents/skills")
    found = find(tmp_path, tmp_path)
    assert (len(found.skills), found.shadowed) == (1, ())


def test_circle_of_links_is_no_trouble(tmp_path: Path):
    folder = tmp_path / ".agents/skills"
    folder.mkdir(parents=True)
    (folder / "round").symlink_to(folder / "round")
    assert find(tmp_path, tmp_path).skills == ()


def test_five_hundred_skills_are_all_found(tmp_path: Path):
    for number in range(500):
        write_skill(tmp_path / f".agents/skills/skill-{number:03}")
    assert len(find(tmp_path, tmp_path).skills) == 500


def test_places_that_are_not_there_are_no_skills(tmp_path: Path):
    (tmp_path / ".agents").write_text("a file")
    assert find(tmp_path, tmp_path, tmp_path / "nowhere") == Found()
