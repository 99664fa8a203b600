"""Which layer wins, and how each value knows where it came from."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agent.config.load import find_project_root, load_settings
from agent.config.model import Settings, all_settings, default_settings, value_of
from tests.config.conftest import Home


def test_without_any_file_the_defaults_hold(home: Home) -> None:
    loaded = home.load()
    assert loaded.settings.profile == "embedded"
    assert loaded.settings.limits.max_steps == 40
    assert {str(origin) for origin in loaded.origins.values()} == {"default"}
    assert loaded.notices == ()


def test_the_defaults_pass_their_own_validation() -> None:
    defaults = default_settings(Path("/models"))
    assert Settings.model_validate(defaults.model_dump()) == defaults


def test_settings_cannot_be_changed_afterwards(home: Home) -> None:
    limits: Any = home.load().settings.limits
    with pytest.raises(ValidationError):
        limits.max_steps = 3


def test_every_layer_overrides_the_one_below(home: Home) -> None:
    steps = []
    home.user("[limits]\nmax_steps = 1\n")
    steps.append(home.load().settings.limits.max_steps)
    home.clone("[limits]\nmax_steps = 2\n")
    steps.append(home.load().settings.limits.max_steps)
    variables = {"AGENT_LIMITS_MAX_STEPS": "3"}
    steps.append(home.load(variables).settings.limits.max_steps)
    steps.append(home.load(variables, limits__max_steps=4).settings.limits.max_steps)
    assert steps == [1, 2, 3, 4]


def test_a_layer_leaves_alone_what_it_does_not_mention(home: Home) -> None:
    home.user("[limits]\nmax_steps = 1\nmax_tokens = 9\n")
    home.clone("[limits]\nmax_steps = 2\n")
    assert home.load().settings.limits.max_tokens == 9


def test_a_value_from_a_file_knows_file_and_line(home: Home) -> None:
    home.user("profile = 'x'\n\n[limits]\n# often\nmax_steps = 1\n")
    assert str(home.load().origins["limits.max_steps"]) == f"user {home.user_file}:5"
    assert str(home.load().origins["profile"]) == f"user {home.user_file}:1"


def test_a_value_from_the_environment_knows_its_variable(home: Home) -> None:
    loaded = home.load({"AGENT_PROFILE": "x"})
    assert str(loaded.origins["profile"]) == "environment AGENT_PROFILE"


def test_a_value_from_a_flag_says_so(home: Home) -> None:
    assert str(home.load(profile="x").origins["profile"]) == "command line"


def test_a_flag_that_was_not_given_is_none_and_changes_nothing(home: Home) -> None:
    assert home.load(profile=None).settings.profile == "embedded"


def test_text_from_a_flag_is_converted(home: Home) -> None:
    assert home.load(limits__max_steps="7").settings.limits.max_steps == 7


def test_permission_rules_of_all_layers_add_up(home: Home) -> None:
    home.user('[permissions]\ndeny = ["shell(rm *)"]\n')
    home.clone('[permissions]\ndeny = ["write(docs/**)", "shell(rm *)"]\n')
    loaded = home.load({"AGENT_PERMISSIONS_DENY": "read(~/a), shell(git log, -p)"})
    assert loaded.settings.permissions.deny == (
        "shell(rm *)",
        "write(docs/**)",
        "read(~/a)",
        "shell(git log, -p)",
    )
    assert str(loaded.origins["permissions.deny"]) == (
        f"user {home.user_file}:2 + project {home.project_file}:2 + environment AGENT_PERMISSIONS_DENY"
    )


def test_a_project_cannot_make_a_persons_rules_disappear(home: Home) -> None:
    home.user('[permissions]\ndeny = ["shell(rm *)"]\nask = ["shell(git *)"]\n')
    home.clone("[permissions]\ndeny = []\nask = []\n")
    permissions = home.load().settings.permissions
    assert (permissions.deny, permissions.ask) == (("shell(rm *)",), ("shell(git *)",))


def test_the_models_folder_is_in_the_data_folder(home: Home) -> None:
    expected = home.folder / "data" / "models"
    assert home.load().settings.models.folder == expected
    assert home.load(profile="x").settings.models.folder == expected


def test_a_relative_models_folder_is_beside_the_file_that_names_it(home: Home) -> None:
    home.user('[models]\nfolder = "big"\n')
    assert home.load().settings.models.folder == home.user_file.parent / "big"


def test_a_relative_server_binary_is_beside_the_file_that_names_it_and_a_bare_name_stays(home: Home) -> None:
    home.user('[server]\nbinary = "bin/llama-server"\n')
    assert home.load().settings.server.binary == str(home.user_file.parent / "bin" / "llama-server")
    home.user('[server]\nbinary = "my-server"\n')
    assert home.load().settings.server.binary == "my-server"


def test_a_models_folder_can_start_at_home(home: Home) -> None:
    loaded = home.load({"AGENT_MODELS_FOLDER": "~/models"})
    assert loaded.settings.models.folder == Path.home() / "models"


def test_the_order_of_model_sources_is_kept(home: Home) -> None:
    assert home.load({"AGENT_MODELS_SOURCES": "pypi,hub"}).settings.models.sources == ("pypi", "hub")


@pytest.mark.parametrize(("text", "expected"), [("no", False), ("TRUE", True), ("0", False), ("on", True)])
def test_switches_in_the_environment_take_the_usual_words(home: Home, text: str, expected: bool) -> None:
    assert home.load({"AGENT_SERVER_REUSE": text}).settings.server.reuse is expected


def test_an_empty_variable_counts_as_not_set(home: Home) -> None:
    home.user("profile = 'mine'\n")
    assert home.load({"AGENT_PROFILE": "", "AGENT_LIMITS_MAX_STEPS": ""}).settings.profile == "mine"


def test_a_list_in_the_environment_may_be_a_toml_array(home: Home) -> None:
    loaded = home.load({"AGENT_PERMISSIONS_ASK": '["shell(a, b", "c"]'})
    assert loaded.settings.permissions.ask == ("shell(a, b", "c")


def test_no_project_means_no_project_layer(home: Home) -> None:
    home.clone("profile = 'x'\n")
    assert load_settings(None, home.environment, {}).settings.profile == "embedded"


def test_the_project_root_is_the_folder_with_the_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert find_project_root(inner) == tmp_path.resolve()


def test_a_worktree_whose_git_is_a_file_is_a_project_root_too(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: elsewhere\n", encoding="utf-8")
    (tmp_path / "a").mkdir()
    assert find_project_root(tmp_path / "a") == tmp_path.resolve()


def test_every_setting_has_a_description_and_a_variable_of_its_own() -> None:
    infos = list(all_settings())
    assert all(info.description for info in infos)
    assert len({info.key.replace(".", "_") for info in infos}) == len(infos)
    for info in infos:
        value_of(default_settings(Path()), info.key)


def test_loading_without_files_imports_nothing_that_only_mistakes_and_edits_need(home: Home) -> None:
    program = (
        "import sys; from pathlib import Path; from agent.config.load import load_settings;"
        f"load_settings(Path({str(home.project)!r}), {home.environment!r}, {{}});"
        "print(*{'difflib', 'tomllib', 'tomlkit', 'platformdirs', 'agent.config.trust'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
