"""`agent skills` and `agent trust` for skills, as a person meets them."""

import argparse
import json
from pathlib import Path

import pytest

from agent.cli import skills, trust
from agent.core.errors import UsageError
from tests.skills.shelf import write_skill


def agent(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    subparsers = parser.add_subparsers(required=True)
    skills.add_parser(subparsers)
    trust.add_parser(subparsers)
    parsed = parser.parse_args(arguments)
    return parsed.func(parsed)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for kind in ("CONFIG", "STATE", "DATA"):
        monkeypatch.setenv(f"AGENT_{kind}_HOME", str(tmp_path / kind.lower()))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    monkeypatch.chdir(root)
    return root


def test_list_names_skills_on_stdout_and_trouble_on_stderr(project: Path, capsys: pytest.CaptureFixture[str]):
    write_skill(project / ".agents/skills/good")
    write_skill(project / ".agents/skills/bad", "no front matter")
    write_skill(project / ".agents/skills/odd", "---\nname: O\x1b[31mDD\ndescription: D\x07oes.\n---\n")
    assert agent("skills", "list") == 0
    out, err = capsys.readouterr()
    assert "good" in out
    assert "not trusted" in out
    assert "review-a-diff" in out
    assert "left out" in err
    assert "\x1b" not in out + err
    assert "\x07" not in out + err


def test_list_has_whole_descriptions_where_it_goes_to_no_terminal(
    project: Path, capsys: pytest.CaptureFixture[str]
):
    text = " ".join(["word"] * 150) + " end"
    write_skill(project / ".agents/skills/long", f"---\nname: long\ndescription: {text}\n---\nDo it.\n")
    agent("skills", "list")
    assert text in capsys.readouterr().out


def test_list_as_json_has_what_is_left_out_and_why(project: Path, capsys: pytest.CaptureFixture[str]):
    write_skill(project / ".agents/skills/bad", "---\nname: [\n---\n")
    write_skill(project / ".agents/skills/deploy")
    write_skill(project / ".claude/skills/deploy")
    agent("skills", "list", "--json")
    report = json.loads(capsys.readouterr().out)
    assert report["skills"][0]["name"] == "deploy"
    assert report["shadowed"][0]["place"] == ".claude/skills/deploy"
    assert "YAML" in report["skipped"][0]["reason"]


def test_a_folder_for_settings_that_a_new_skill_makes_is_for_its_owner_only(project: Path):
    agent("skills", "new", "mine", "--user")
    assert (project.parent / "config").stat().st_mode & 0o777 == 0o700


def test_new_skill_is_shown_and_valid(project: Path, capsys: pytest.CaptureFixture[str]):
    assert agent("skills", "new", "mine", "--user", "--description", "Does mine.") == 0
    path = Path(capsys.readouterr().out.strip())
    assert path.name == "SKILL.md"
    assert agent("skills", "show", "mine") == 0
    assert "Does mine." in capsys.readouterr().out
    assert agent("skills", "validate") == 0


def test_validate_says_what_is_wrong_and_ends_with_1(project: Path, capsys: pytest.CaptureFixture[str]):
    folder = write_skill(project / "one", "---\nname: Two\ndescription: Does it.\n---\nBody.\n")
    assert agent("skills", "validate", str(folder / "SKILL.md")) == 1
    assert "small letters" in capsys.readouterr().out


def test_validate_takes_the_name_of_a_new_skill(project: Path, capsys: pytest.CaptureFixture[str]):
    agent("skills", "new", "mine")
    capsys.readouterr()
    assert agent("skills", "validate", "mine") == 0
    assert capsys.readouterr().out.endswith("mine: good\n")


def test_add_copies_into_the_own_folder_and_says_what_it_may(
    project: Path, capsys: pytest.CaptureFixture[str]
):
    text = "---\nname: git-it\ndescription: Does it.\nallowed-tools: Bash(git:*)\n---\nBody.\n"
    write_skill(project / "elsewhere/git-it", text)
    assert agent("skills", "add", "elsewhere/git-it") == 0
    out, err = capsys.readouterr()
    assert (Path(out.strip()) / "SKILL.md").is_file()
    assert "shell(git *)" in err


@pytest.mark.parametrize("words", [("show", "none"), ("add", "nowhere"), ("validate", "."), ("new", "A B")])
def test_mistake_is_said_in_a_line(project: Path, words: tuple[str, ...]):
    with pytest.raises(UsageError):
        agent("skills", *words)


def test_a_slip_in_a_name_is_answered_with_the_closest_one(project: Path):
    write_skill(project / ".agents/skills/sorting")

    with pytest.raises(UsageError) as error:
        agent("skills", "show", "sortng")

    assert error.value.hint == "did you mean 'sorting'?"


def test_trust_is_for_the_skill_that_was_shown(project: Path, capsys: pytest.CaptureFixture[str]):
    text = "---\nname: deploy\ndescription: Does it.\nallowed-tools: Bash(make:*)\n---\nBody.\n"
    folder = write_skill(project / ".agents/skills/deploy", text)
    assert agent("trust", "--yes") == 0
    err = capsys.readouterr().err
    assert "shell(make *)" in err
    assert err.splitlines()[-1] == "trusted until it changes: 1 skill"
    agent("skills", "list")
    assert "not trusted" not in capsys.readouterr().out
    (folder / "SKILL.md").write_text(text.replace("make", "rm"))
    agent("skills", "list")
    assert "not trusted" in capsys.readouterr().out
    agent("trust", "--list")
    assert "changed" in capsys.readouterr().out


def test_revoked_trust_is_gone_for_skills_too(project: Path, capsys: pytest.CaptureFixture[str]):
    write_skill(project / ".agents/skills/deploy")
    agent("trust", "--yes")
    agent("trust", "--revoke")
    capsys.readouterr()
    agent("skills", "list")
    assert "not trusted" in capsys.readouterr().out


def test_trust_of_the_configuration_leaves_trusted_skills_alone(
    project: Path, capsys: pytest.CaptureFixture[str]
):
    write_skill(project / ".agents/skills/deploy")
    agent("trust", "--yes")
    (project / ".agent").mkdir()
    (project / ".agent/config.toml").write_text("[hooks]\nbefore_tool = ['true']\n")
    capsys.readouterr()
    agent("trust", "--yes")
    err = capsys.readouterr().err
    assert "hooks.before_tool" in err
    assert "Skills of this project" not in err


def test_trust_shows_the_text_of_a_command_and_is_for_that_file(
    project: Path, capsys: pytest.CaptureFixture[str]
):
    command = project / ".claude/commands/db/fix.md"
    command.parent.mkdir(parents=True)
    command.write_text("---\ndescription: Mends it.\n---\nMend \x1b[2Jit.\nThen push.\n", "utf-8")
    assert agent("trust", "--yes") == 0
    err = capsys.readouterr().err
    assert "  ! /db:fix: Mends it.\n  !     Mend [2Jit.\n  !     Then push.\n" in err
    assert err.endswith("trusted until it changes: 1 command\n")
    command.write_text("Other.\n", "utf-8")
    agent("trust", "--list")
    assert "fix.md  (its configuration changed" in capsys.readouterr().out
    with pytest.raises(UsageError, match="nobody can be asked"):
        agent("trust")
    capsys.readouterr()
    agent("trust", "--revoke")
    assert "is no longer trusted" in capsys.readouterr().err
    agent("trust", "--list")
    assert capsys.readouterr().out == ""
