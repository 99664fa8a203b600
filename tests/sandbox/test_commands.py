"""Which kind is chosen, and what happens where none works."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.core.confinement import ConfinementError
from agent.sandbox.commands import Demand, Sandbox
from agent.sandbox.find import probed, working
from agent.sandbox.policy import Policy, Wishes
from agent.sandbox.probed import Probed
from agent.sandbox.seatbelt import seatbelt_arguments, seatbelt_profile

NONE = Probed("none", reasons=("bubblewrap: not installed", "Landlock: the kernel has none"))


def sandbox(
    folder: Path, demand: Demand, found: Probed | Callable[[], Probed], network: bool = False
) -> Sandbox:
    find = found if callable(found) else lambda: found
    wishes = Wishes(workspace=folder, homes=(folder,), environment={"PATH": "/usr/bin:/bin"})
    return Sandbox(wishes=wishes, demand=demand, network=lambda: network, find=find)


async def test_commands_are_refused_where_a_sandbox_is_demanded_and_none_works(tmp_path: Path):
    with pytest.raises(ConfinementError, match=r"does not work here: bubblewrap: not installed; Landlock"):
        await sandbox(tmp_path, "required", NONE).confined(("ls",))


async def test_commands_run_as_they_are_where_none_works_and_none_is_demanded(tmp_path: Path):
    assert await sandbox(tmp_path, "auto", NONE).confined(("ls",)) == ("ls",)


async def test_nothing_is_tried_where_it_is_switched_off(tmp_path: Path):
    def find() -> Probed:
        raise AssertionError("it was tried")

    one = sandbox(tmp_path, "off", find)
    assert await one.confined(("ls",)) == ("ls",)
    assert not await one.in_force()


async def test_the_kind_is_found_out_once(tmp_path: Path):
    asked: list[int] = []

    def find() -> Probed:
        asked.append(1)
        return NONE

    one = sandbox(tmp_path, "auto", find)
    await one.confined(("ls",))
    await one.confined(("ls",))
    assert asked == [1]


async def test_a_failure_without_network_names_the_setting(tmp_path: Path):
    one = sandbox(tmp_path, "auto", Probed("landlock", "", 7))
    assert one.explanation("curl: (6) Could not resolve host: x") == ""  # nothing ran in it yet
    await one.kind()
    assert 'sandbox.network = "allow"' in one.explanation("curl: (6) Could not resolve host: x")
    assert "sandbox.writable" in one.explanation("touch: cannot touch '/x': Read-only file system")
    assert one.explanation("2 tests failed") == ""


async def test_the_temporary_folder_is_gone_after_the_end(tmp_path: Path):
    one = sandbox(tmp_path, "auto", Probed("bubblewrap", "bwrap", 0))
    words = list(await one.confined(("ls",)))
    temporary = Path(words[words.index("--bind") + 1])
    assert temporary.is_dir()
    one.close()
    assert not temporary.exists()


def fake_bwrap(folder: Path, body: str) -> dict[str, str]:
    program = folder / "bwrap"
    program.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    program.chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


def test_a_program_that_runs_nothing_and_exits_with_0_is_no_sandbox(tmp_path: Path):
    environment = fake_bwrap(tmp_path, "exit 0")
    why = working(Probed("bubblewrap", str(tmp_path / "bwrap")), environment)
    assert why == "it ran nothing and ended with status 0"


def test_a_program_that_runs_commands_and_confines_nothing_is_no_sandbox(tmp_path: Path):
    environment = fake_bwrap(tmp_path, 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"')
    why = working(Probed("bubblewrap", str(tmp_path / "bwrap")), environment)
    assert why == "a command could write outside of the workspace"


def test_a_program_that_must_not_make_namespaces_is_no_sandbox_and_says_why(tmp_path: Path):
    environment = fake_bwrap(tmp_path, "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1")
    found = probed(environment)
    assert found.kind != "bubblewrap"
    assert "bubblewrap: bwrap: setting up uid map: Permission denied" in found.reasons


def test_what_works_is_remembered_until_something_changes(tmp_path: Path):
    cache = tmp_path / "state" / "sandbox.json"
    first = probed(os.environ, cache)
    assert first.kind != "none"
    assert cache.is_file()
    text = cache.read_text(encoding="utf-8")
    cache.write_text(text.replace(f'"{first.kind}"', '"seatbelt"'), encoding="utf-8")
    assert probed(os.environ, cache).kind == "seatbelt"  # read, not tried
    environment = fake_bwrap(tmp_path, "exit 0")
    assert probed(environment, cache).kind != "seatbelt"
    cache.write_text("{}", encoding="utf-8")
    assert probed(os.environ, cache).kind == first.kind


def test_the_profile_for_macos_closes_what_it_has_to_and_quotes_names():
    policy = Policy(
        workspace=Path('/Users/me/a "b"'),
        kept=(Path('/Users/me/a "b"/.git/hooks'),),
        hidden=(Path("/Users/me/.ssh"),),
        temporary=Path("/private/tmp/x"),
        network=False,
        variables={"TMPDIR": "/tmp", "GOCACHE": "/tmp/.cache/go"},
    )
    profile = seatbelt_profile(policy).splitlines()
    assert profile[:2] == ["(version 1)", "(deny default)"]
    assert '(allow file-read* file-write* (subpath "/Users/me/a \\"b\\""))' in profile
    assert '(deny file-read* file-write* (subpath "/Users/me/.ssh"))' in profile
    assert profile.index('(deny file-write* (subpath "/Users/me/a \\"b\\"/.git/hooks"))') > profile.index(
        '(allow file-read* file-write* (subpath "/Users/me/a \\"b\\""))'
    )
    assert "(deny network*)" in profile
    words = seatbelt_arguments(policy, ("ls",))
    assert words[:2] == ["/usr/bin/sandbox-exec", "-p"]
    assert "TMPDIR=/private/tmp/x" in words
    assert words[-1] == "ls"
