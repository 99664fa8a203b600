"""`agent config` and `agent trust` as a person meets them."""

import argparse
import io
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent.cli import config, trust
from agent.core.errors import UsageError


class Terminal(io.StringIO):
    """A stdin where somebody types."""

    def isatty(self) -> bool:
        return True


def agent(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    subparsers = parser.add_subparsers(required=True)
    config.add_parser(subparsers)
    trust.add_parser(subparsers)
    parsed = parser.parse_args(arguments)
    return parsed.func(parsed)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for kind in ("CONFIG", "STATE", "DATA"):
        monkeypatch.setenv(f"AGENT_{kind}_HOME", str(tmp_path / kind.lower()))
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / ".agent").mkdir()
    (root / ".agent" / "config.toml").write_text("[check]\ncommand = 'make test'\n", encoding="utf-8")
    monkeypatch.chdir(root)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    return root


def lines_about(key: str, text: str) -> Sequence[str]:
    return [line for line in text.splitlines() if line.startswith(f"{key} ")]


def test_show_has_a_line_for_each_setting_with_its_source(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agent("config", "set", "limits.max_steps", "7")
    assert agent("config", "show") == 0
    shown = capsys.readouterr().out
    (line,) = lines_about("limits.max_steps", shown)
    assert line.split()[1:3] == ["7", "user"]
    assert lines_about("limits.max_tokens", shown)[0].index("default") == line.index("user")


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("limits.max_steps", "limits.max_steps", "limits.max_steps"),
        ("sandbox", "sandbox.mode", "sandbox.auto_allow"),
    ],
)
def test_show_takes_one_setting_or_a_section(
    name: str, first: str, last: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert agent("config", "show", name) == 0
    shown = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert (shown[0], shown[1], shown[-1]) == ("KEY", first, last)
    agent("config", "show", name, "--json")
    assert list(json.loads(capsys.readouterr().out)["settings"]) == shown[1:]
    agent("config", "show", name, "--explain")
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == shown[1:]


def test_show_of_a_setting_that_is_not_there_names_what_was_meant(project: Path) -> None:
    with pytest.raises(UsageError, match=r"no setting 'limits.max_stepss'") as refusal:
        agent("config", "show", "limits.max_stepss")
    assert "did you mean 'limits.max_steps'?" in refusal.value.hint


def test_config_alone_shows(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert agent("config") == 0
    assert lines_about("profile", capsys.readouterr().out)


def test_show_puts_notices_on_stderr(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agent("config", "show", "--json")
    captured = capsys.readouterr()
    assert "check.command" in captured.err
    assert json.loads(captured.out)["settings"]["check.command"]["value"] == ""


def test_json_has_value_sources_and_description(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agent("config", "show", "--json")
    setting = json.loads(capsys.readouterr().out)["settings"]["limits.max_steps"]
    assert setting == {
        "value": 40,
        "sources": [{"layer": "default", "place": "", "line": None}],
        "description": "model requests in one run",
    }


def test_explain_says_what_settings_mean(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agent("config", "show", "--explain")
    assert "seconds" in lines_about("limits.check_seconds", capsys.readouterr().out)[0]


def test_path_names_the_files(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agent("config", "path")
    agent("config", "path", "--project")
    assert capsys.readouterr().out.splitlines() == [
        str(tmp_path / "config" / "config.toml"),
        str(project / ".agent" / "config.toml"),
    ]


def test_trust_refuses_where_nobody_can_be_asked(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="nobody can be asked") as caught:
        agent("trust")
    assert caught.value.exit_code == 2
    assert '! check.command = "make test"' in capsys.readouterr().err


def test_trust_with_yes_lets_the_project_have_its_say(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert agent("trust", "--yes") == 0
    assert '! check.command = "make test"' in capsys.readouterr().err
    agent("config", "show")
    captured = capsys.readouterr()
    assert '"make test"' in captured.out
    assert captured.err == ""


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("yes\n", 0), ("\n", 1), ("n\n", 1), ("", 1)])
def test_trust_asks_in_a_terminal(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: str, code: int
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    assert agent("trust") == code
    agent("trust", "--list")
    assert (str(project) in capsys.readouterr().out) == (code == 0)


def test_trusting_twice_does_not_ask_twice(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agent("trust", "--yes")
    assert agent("trust") == 0
    assert "trusted already" in capsys.readouterr().err


def test_trust_from_a_folder_inside_means_the_project(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "inner").mkdir()
    agent("trust", "inner", "--yes")
    agent("trust", "--list")
    assert capsys.readouterr().out == f"{project}\n"


def test_the_list_tells_what_changed_since(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agent("trust", "--yes")
    (project / ".agent" / "config.toml").unlink()
    agent("trust", "--list")
    assert "changed or is gone" in capsys.readouterr().out


def test_revoke_takes_trust_back(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agent("trust", "--yes")
    assert agent("trust", "--revoke") == 0
    agent("trust", "--list")
    assert capsys.readouterr().out == ""


def test_there_is_nothing_to_trust_without_a_configuration(project: Path) -> None:
    (project / ".agent" / "config.toml").unlink()
    with pytest.raises(UsageError, match="nothing to trust"):
        agent("trust", "--yes")


def test_a_path_that_is_no_folder_cannot_be_trusted(project: Path) -> None:
    with pytest.raises(UsageError, match="is not a folder"):
        agent("trust", "nowhere")


def test_the_commands_import_nothing_heavy_until_they_run() -> None:
    program = (
        "import sys, agent.cli.config, agent.cli.trust;"
        "print(*{'pydantic', 'platformdirs', 'tomlkit', 'json', 'asyncio'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_unset_goes_back_to_the_default(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agent("config", "set", "limits.max_steps", "7")
    assert agent("config", "unset", "limits.max_steps") == 0
    assert "limits.max_steps is no longer set in " in capsys.readouterr().err
    agent("config", "show")
    assert " default" in lines_about("limits.max_steps", capsys.readouterr().out)[0]


def test_what_is_still_wrong_is_said_after_a_change(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config" / "config.toml"
    file.parent.mkdir()
    file.write_text("zebra = 1\n[permissions]\nmod = 1\n", encoding="utf-8")
    assert agent("config", "unset", "permissions.mod") == 0
    said = capsys.readouterr().err.splitlines()
    assert said[0] == f"permissions.mod is no longer set in {file}"
    assert said[1].startswith(f"still wrong: {file}:1: unknown key 'zebra'")
    assert agent("config", "unset", "zebra") == 0
    assert "still wrong" not in capsys.readouterr().err


def test_an_unknown_setting_is_told_once_where_all_settings_are(project: Path) -> None:
    with pytest.raises(UsageError) as refused:
        agent("config", "set", "nonsense.key", "3")
    assert str(refused.value).count("lists all settings") == 1


def test_a_profile_that_does_not_exist_is_set_with_a_warning(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert agent("config", "set", "profile", "embeded") == 0
    said = capsys.readouterr().err.splitlines()
    assert said[1] == "warning: unknown profile 'embeded'"
    assert "did you mean embedded" in said[2]
    assert agent("config", "set", "profile", "embedded") == 0
    assert "warning" not in capsys.readouterr().err


def test_show_warns_of_variables_that_count_for_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGENT_SERVR_ULR", "x")
    assert agent("config", "show") == 0
    warned = capsys.readouterr().err
    assert "warning: AGENT_SERVR_ULR is no setting of this program" in warned
    assert "did you mean AGENT_SERVER_URL?" in warned


def test_explain_also_works_with_settings_that_cannot_be_read(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGENT_SERVER_URL", "foo")
    assert agent("config", "show", "--explain") == 0
    assert lines_about("server.url", capsys.readouterr().out)
