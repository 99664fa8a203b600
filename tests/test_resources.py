"""Where folders are found."""

from pathlib import Path

import pytest

from agent import resources
from agent.core.errors import UsageError

FOLDERS = {
    "AGENT_CONFIG_HOME": resources.config_folder,
    "AGENT_STATE_HOME": resources.state_folder,
    "AGENT_DATA_HOME": resources.data_folder,
    "AGENT_CACHE_HOME": resources.cache_folder,
}


@pytest.mark.parametrize("variable", FOLDERS)
def test_a_variable_moves_a_folder(variable: str, tmp_path: Path) -> None:
    assert FOLDERS[variable]({variable: str(tmp_path)}) == tmp_path


@pytest.mark.parametrize("variable", FOLDERS)
def test_a_relative_variable_becomes_absolute(variable: str) -> None:
    assert FOLDERS[variable]({variable: "somewhere"}) == Path.cwd() / "somewhere"


@pytest.mark.parametrize("variable", FOLDERS)
def test_without_a_variable_the_folder_carries_the_name_of_the_program(variable: str) -> None:
    assert "dflash-agent" in str(FOLDERS[variable]({variable: ""}))


def test_the_runtime_folder_is_in_the_state_folder(tmp_path: Path) -> None:
    assert resources.runtime_folder({"AGENT_STATE_HOME": str(tmp_path)}) == tmp_path / "run"


def test_a_private_folder_is_for_its_owner_only(tmp_path: Path) -> None:
    folder = resources.ensure_private_folder(tmp_path / "a" / "b")
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="cannot create the folder"):
        resources.ensure_private_folder(tmp_path / "file" / "b")


def test_an_unknown_home_is_one_line() -> None:
    with pytest.raises(UsageError, match="home folder"):
        resources.expand_home("~nobody-of-that-name/x")


def test_a_checkout_has_profiles_and_skills_at_its_root() -> None:
    root = Path(__file__).resolve().parent.parent
    assert resources.profiles_folder() == root / "server_profiles"
    assert resources.skills_folder() == root / "skills"


def test_an_installed_package_uses_its_own_copy_and_not_a_neighbour(tmp_path: Path) -> None:
    own = tmp_path / "agent" / "data" / "skills"
    own.mkdir(parents=True)
    (tmp_path / "skills").mkdir()
    assert resources.shipped_folder("skills", tmp_path / "agent") == own


def test_an_incomplete_installation_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="incomplete"):
        resources.shipped_folder("skills", tmp_path / "agent")
