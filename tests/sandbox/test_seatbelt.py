"""What the profile for macOS allows, read by its rules. Nothing of it has run on macOS."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.sandbox.bwrap import bwrap_arguments
from agent.sandbox.policy import Policy
from agent.sandbox.seatbelt import seatbelt_profile
from tests.sandbox.seatbelt_rules import NoProfileError, Profile, expressions

HOME = "/Users/me"
WORK = f"{HOME}/work"
OURS = "/private/var/folders/x/T/agent-sandbox-1/tmp"
STATE = f"{HOME}/Library/Application Support/dflash-agent"

POLICY = Policy(
    workspace=Path(WORK),
    writable=(Path(f"{WORK}/.git"), Path(f"{HOME}/.gradle")),
    kept=(Path(f"{WORK}/.agent"), Path(f"{WORK}/.git/config"), Path(f"{WORK}/.git/hooks")),
    hidden=(Path(f"{HOME}/.ssh"), Path(f"{HOME}/.gradle/gradle.properties"), Path(STATE)),
    unreadable=(Path(f"{WORK}/private/keys"), Path(f"{WORK}/k.pem")),
    readable=(Path(f"{STATE}/sessions/1/output"),),
    temporary=Path(OURS),
    network=False,
    variables={},
)

PLACES = [  # path, can it be read, can it be written
    (f"{WORK}/new.txt", True, True),
    (f"{WORK}/deep/new.txt", True, True),
    (f"{WORK}/.git/index", True, True),
    (f"{WORK}/.git/config", True, False),
    (f"{WORK}/.git/hooks/pre-commit", True, False),
    (f"{WORK}/.agent/config.toml", True, False),
    (f"{WORK}/.agent", True, False),
    (f"{WORK}/private/keys/a", False, False),
    (f"{WORK}/private/other", True, True),
    (f"{WORK}/k.pem", False, False),
    (f"{WORK}/k.pem.txt", True, True),
    (f"{WORK}-of-others/a", True, False),
    (f"{HOME}/notes.txt", True, False),
    (f"{HOME}/.ssh/id_ed25519", False, False),
    (f"{HOME}/.ssh", False, False),
    (f"{HOME}/.gradle/caches/a", True, True),
    (f"{HOME}/.gradle/gradle.properties", False, False),
    (f"{STATE}/config.toml", False, False),
    (f"{STATE}/sessions/1/events.jsonl", False, False),
    (f"{STATE}/sessions/1/output/2.txt", True, False),
    (f"{OURS}/a", True, True),
    ("/private/tmp/a", True, False),
    ("/private/var/folders/x/T/agent-sandbox-2/tmp/a", True, False),
    ("/etc/hosts", True, False),
    ("/usr/local/bin/tool", True, False),
    ("/", True, False),
]


def profile(**changes: Any) -> Profile:
    return Profile(seatbelt_profile(replace(POLICY, **changes)))


@pytest.mark.parametrize(("path", "read", "written"), PLACES)
def test_each_place_is_as_open_as_the_documentation_says(path: str, read: bool, written: bool):
    assert (profile().can_read(path), profile().can_write(path)) == (read, written)


@pytest.mark.parametrize(
    ("path", "target"),
    [
        (f"{WORK}/private", f"{WORK}/moved"),
        (f"{WORK}/private/keys", f"{WORK}/moved"),
        (f"{WORK}/k.pem", f"{WORK}/plain.txt"),
        (f"{WORK}/.git", f"{WORK}/.git2"),
        (f"{WORK}/.git/hooks", f"{WORK}/.git/old"),
        (f"{WORK}/.agent", f"{WORK}/old"),
        (f"{WORK}/new", f"{WORK}/.git/config"),
        (f"{HOME}/.gradle", f"{WORK}/gradle"),
        (WORK, f"{OURS}/work"),
        (OURS, f"{WORK}/temporary"),
        (f"{HOME}/.ssh", f"{WORK}/keys"),
    ],
)
def test_nothing_that_is_closed_is_reached_by_moving_what_leads_to_it(path: str, target: str):
    assert not profile().can_move(path, target)


def test_what_leads_to_nothing_closed_can_be_moved():
    assert profile().can_move(f"{WORK}/src", f"{WORK}/source")
    assert profile().can_move(f"{WORK}/.git/index.lock", f"{WORK}/.git/index")
    assert profile().allows("file-write-unlink", f"{WORK}/private/other")


def test_a_whole_home_as_the_workspace_keeps_its_secrets_and_gives_what_may_be_read():
    """The settings lie inside of it then, and in them again what commands may read."""
    home = profile(workspace=Path(HOME), writable=(), kept=(), unreadable=())
    assert home.can_write(f"{HOME}/new.txt")
    assert not home.can_read(f"{HOME}/.ssh/id_ed25519")
    assert not home.can_write(f"{STATE}/config.toml")
    assert not home.can_move(f"{HOME}/Library", f"{HOME}/moved")
    assert home.can_read(f"{STATE}/sessions/1/output/2.txt")
    assert not home.can_write(f"{STATE}/sessions/1/output/2.txt")


def test_a_workspace_inside_of_something_hidden_is_open_and_its_neighbours_are_not():
    one = profile(
        workspace=Path(f"{HOME}/clients/one"),
        writable=(Path(HOME),),
        hidden=(Path(f"{HOME}/clients"),),
        kept=(Path(f"{HOME}/clients/one/.agent"),),
    )
    assert one.can_write(f"{HOME}/clients/one/new.txt")
    assert not one.can_write(f"{HOME}/clients/one/.agent/config.toml")
    assert not one.can_read(f"{HOME}/clients/two/a.txt")
    assert one.can_write(f"{HOME}/notes.txt")


def test_without_network_nothing_is_reached():
    offline = profile()
    for operation in ("network-outbound", "network-inbound", "network-bind"):
        assert not offline.allows(operation)
    assert not offline.allows("network-outbound", "/private/var/run/mDNSResponder")
    assert not offline.allows("mach-lookup")


def test_with_network_programs_outside_that_serve_sockets_in_files_are_not_reached():
    online = profile(network=True)
    assert online.allows("network-outbound")
    assert online.allows("network-bind")
    assert not online.allows("network-outbound", "/var/run/docker.sock")
    assert not online.allows("network-outbound", f"{HOME}/.ssh/agent.sock")


def test_with_network_names_of_hosts_are_looked_up():
    online = profile(network=True)
    assert online.allows("network-outbound", "/private/var/run/mDNSResponder")
    assert online.allows("mach-lookup")


def test_commands_start_others_and_signal_nobody_but_them():
    confined = profile()
    assert confined.allows("process-exec")
    assert confined.allows("process-fork")
    assert "(allow signal (target same-sandbox))" in seatbelt_profile(POLICY)
    for operation in ("process-info-pidinfo", "mach-register", "system-socket", "nvram-set", "file-mount"):
        assert not confined.allows(operation), operation


def test_devices_that_programs_write_to_are_open_and_disks_are_not():
    confined = profile()
    assert confined.allows("file-write-data", "/dev/null")
    assert not confined.allows("file-write-create", "/dev/null2")
    assert not confined.allows("file-write-data", "/dev/disk0")


@pytest.mark.parametrize(
    "name", ['a "b"', "back\\slash", ") (allow default) (", "tab\there", "Grün ✓", "a;b"]
)
def test_names_of_any_kind_mean_themselves(name: str):
    named = profile(hidden=(Path(HOME, name),), workspace=Path(WORK, name))
    assert not named.can_read(f"{HOME}/{name}/key")
    assert named.can_write(f"{WORK}/{name}/new.txt")
    assert not named.can_write("/etc/passwd")


def test_bubblewrap_is_told_of_the_same_places_in_the_same_order(tmp_path: Path):
    """Both read their rules from the outside to the inside, so that neither opens what the other closes."""
    words = bwrap_arguments(
        "bwrap", POLICY, ("true",), empty_file=tmp_path / "empty", outlives=False, is_root=False
    )
    mounted = [words.index(str(path)) for path in (POLICY.workspace, *POLICY.writable[:1], *POLICY.kept[1:])]
    assert mounted == sorted(mounted)
    rules = seatbelt_profile(POLICY).splitlines()
    written = [
        next(number for number, rule in enumerate(rules) if f'(subpath "{path}")' in rule)
        for path in (POLICY.workspace, *POLICY.writable[:1], *POLICY.kept[1:])
    ]
    assert written == sorted(written)


# The reader itself: a wrong order must be found.


def test_the_last_rule_that_matches_wins():
    closed = Profile('(version 1)(deny default)(allow file-read*)(deny file-read* (subpath "/a"))')
    opened = Profile('(version 1)(deny default)(deny file-read* (subpath "/a"))(allow file-read*)')
    assert (closed.can_read("/a/b"), opened.can_read("/a/b")) == (False, True)
    assert closed.can_read("/ab")


@pytest.mark.parametrize(
    "text",
    [
        "(version 1",
        "(version 1))",
        '(version 1)(allow file-read* (subpath "/a)',
        "(deny default)",
        "(version 1)(permit file-read*)",
        '(version 1)(allow file-read* (regex "a"))',
    ],
)
def test_a_text_that_is_no_profile_is_found_out(text: str):
    with pytest.raises(NoProfileError):
        Profile(text)


def test_strings_are_read_with_what_is_escaped_in_them():
    assert expressions('(literal "/a \\"b\\" \\\\")') == [["literal", '"/a "b" \\']]
