"""Which llama-server a profile gets."""

import json
from pathlib import Path

import pytest

from agent.core.errors import ServerError
from agent.server.binaries import CHOSEN, Installed, choose, find_binary, forget_choice, installed
from agent.server.profile import Profile
from tests.server.conftest import make_profile


def put(servers: Path, name: str, version: str, dialect: str, day: int = 1) -> Path:
    folder = servers / f"{name}-{version}"
    program = executable(folder / "bin" / "llama-server")
    note = {"name": name, "version": version, "dialect": dialect, "installed_at": f"2026-01-{day:02d}"}
    (folder / "install.json").write_text(json.dumps(note), "utf-8")
    return program


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n", "utf-8")
    path.chmod(0o755)
    return path


def profile(dialect: str | None = None) -> Profile:
    return make_profile(engine="llama-server", dialect=dialect)


def only(servers: Path, key: str) -> Installed:
    return next(one for one in installed(servers) if one.key == key)


def test_the_newest_installed_version_of_the_dialect_is_used(tmp_path: Path):
    put(tmp_path, "beellama", "0.3.0", "bee-0.3", day=1)
    newer = put(tmp_path, "beellama", "0.3.1", "bee-0.3", day=2)
    put(tmp_path, "llama.cpp", "11434", "llama.cpp", day=3)
    assert find_binary(profile("bee-0.3"), tmp_path, {}) == newer


def test_a_chosen_version_comes_before_a_newer_one(tmp_path: Path):
    older = put(tmp_path, "beellama", "0.3.0", "bee-0.3", day=1)
    put(tmp_path, "beellama", "0.3.1", "bee-0.3", day=2)
    choose(tmp_path, only(tmp_path, "beellama@0.3.0"))
    assert find_binary(profile("bee-0.3"), tmp_path, {}) == older
    assert [one.key for one in installed(tmp_path) if one.chosen] == ["beellama@0.3.0"]


def test_a_choice_for_one_dialect_leaves_that_of_another(tmp_path: Path):
    bee = put(tmp_path, "beellama", "0.3.0", "bee-0.3")
    upstream = put(tmp_path, "llama.cpp", "11434", "llama.cpp")
    choose(tmp_path, only(tmp_path, "beellama@0.3.0"))
    choose(tmp_path, only(tmp_path, "llama.cpp@11434"))
    assert find_binary(profile("bee-0.3"), tmp_path, {}) == bee
    assert find_binary(profile(), tmp_path, {}) == upstream


def test_a_second_choice_for_the_same_dialect_replaces_the_first(tmp_path: Path):
    put(tmp_path, "llama.cpp", "1", "llama.cpp")
    put(tmp_path, "llama.cpp", "2", "llama.cpp")
    for version in ("1", "2"):
        choose(tmp_path, only(tmp_path, f"llama.cpp@{version}"))
    assert json.loads((tmp_path / CHOSEN).read_text("utf-8")) == ["llama.cpp@2"]


def test_a_forgotten_choice_counts_no_more(tmp_path: Path):
    put(tmp_path, "llama.cpp", "1", "llama.cpp", day=1)
    newer = put(tmp_path, "llama.cpp", "2", "llama.cpp", day=2)
    choose(tmp_path, only(tmp_path, "llama.cpp@1"))
    forget_choice(tmp_path, "llama.cpp@1")
    assert find_binary(profile(), tmp_path, {}) == newer


def test_without_a_fitting_installation_the_one_on_the_path_is_used(tmp_path: Path):
    put(tmp_path / "servers", "llama.cpp", "11434", "llama.cpp")
    on_path = executable(tmp_path / "bin" / "llama-server")
    environment = {"PATH": str(tmp_path / "bin")}
    assert find_binary(profile("bee-0.4"), tmp_path / "servers", environment) == on_path


@pytest.mark.parametrize(
    ("dialect", "command"),
    [
        ("bee-0.3", "agent server install beellama"),
        ("bee-0.4", "agent server install beellama --version 0.4"),
        ("llama.cpp", "agent server install llama.cpp"),
        (None, "agent server install llama.cpp"),
        ("ik", "server.binary"),
    ],
)
def test_without_any_the_command_that_brings_one_is_said(tmp_path: Path, dialect: str | None, command: str):
    with pytest.raises(ServerError) as caught:
        find_binary(profile(dialect), tmp_path, {"PATH": ""})
    assert command in caught.value.hint


def test_the_setting_comes_first(tmp_path: Path):
    put(tmp_path, "llama.cpp", "11434", "llama.cpp")
    own = executable(tmp_path / "own" / "llama-server")
    assert find_binary(profile(), tmp_path, {}, str(own)) == own
    assert find_binary(profile(), tmp_path, {}, str(own.parent)) == own
    assert find_binary(profile(), tmp_path, {"PATH": str(own.parent)}, "llama-server") == own


@pytest.mark.parametrize("setting", ["/nowhere/llama-server", "no-such-program", "~nobody-of-this-name/x"])
def test_a_setting_that_names_no_program_is_an_error_and_never_ignored(tmp_path: Path, setting: str):
    put(tmp_path, "llama.cpp", "11434", "llama.cpp")
    with pytest.raises(ServerError, match=r"server\.binary"):
        find_binary(profile(), tmp_path, {"PATH": ""}, setting)


def test_a_setting_that_may_not_be_run_says_so(tmp_path: Path):
    own = executable(tmp_path / "own")
    own.chmod(0o644)
    with pytest.raises(ServerError, match="may not be run"):
        find_binary(profile(), tmp_path, {}, str(own))


@pytest.mark.parametrize("damage", ["[]", "{", '{"name": "x"}', '{"name": 1, "version": 2, "dialect": 3}'])
def test_a_damaged_installation_is_left_out(tmp_path: Path, damage: str):
    program = put(tmp_path, "llama.cpp", "1", "llama.cpp")
    (program.parents[1] / "install.json").write_text(damage, "utf-8")
    assert installed(tmp_path) == []


def test_an_installation_without_its_program_is_left_out(tmp_path: Path):
    put(tmp_path, "llama.cpp", "1", "llama.cpp").unlink()
    assert installed(tmp_path) == []


@pytest.mark.parametrize("damage", ["{}", "nonsense", "[1, null]"])
def test_a_damaged_choice_is_no_choice(tmp_path: Path, damage: str):
    program = put(tmp_path, "llama.cpp", "1", "llama.cpp")
    (tmp_path / CHOSEN).write_text(damage, "utf-8")
    assert find_binary(profile(), tmp_path, {}) == program
