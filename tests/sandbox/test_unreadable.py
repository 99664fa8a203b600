"""Files of the workspace that rules keep from being read, for commands that read by their own means."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from agent.permissions.rules import Rules, parse_rules
from agent.permissions.unreadable import unreadable_places
from agent.sandbox.policy import policy_for
from agent.sandbox.seatbelt import seatbelt_profile
from tests.sandbox.cage import Cage

WORDS = "these-are-private"
READERS = (
    "cat private/a.txt",
    "awk 1 private/deep/b.txt",
    "python3 -c 'import pathlib; print(pathlib.Path(\"k.pem\").read_text())'",
    "cp k.pem copy; cat copy",
    "mv private moved; cat moved/a.txt",
    "ln k.pem second; cat second",
)


@pytest.fixture
def rules(cage: Cage) -> Rules:
    for name in ("private/a.txt", "private/deep/b.txt", "k.pem"):
        path = cage.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(WORDS, encoding="utf-8")
    (cage.workspace / "plain").write_text("plain", encoding="utf-8")
    return parse_rules(deny=["read(private/**)", "read(*.pem)"])


def run(cage: Cage, rules: Rules, command: str) -> str:
    sandbox = cage.sandbox()
    sandbox.unreadable = lambda: unreadable_places(rules, cage.workspace)
    try:
        wrapped = list(asyncio.run(sandbox.confined(("bash", "-c", command))))
        done = subprocess.run(
            wrapped, cwd=cage.workspace, capture_output=True, text=True, timeout=30, check=False
        )
    finally:
        sandbox.close()
    return done.stdout + done.stderr


@pytest.mark.only("bubblewrap")
def test_no_command_reads_what_deny_rules_are_about(cage: Cage, rules: Rules):
    for command in READERS:
        assert WORDS not in run(cage, rules, command), command
    assert (cage.workspace / "private" / "a.txt").read_text("utf-8") == WORDS
    assert (cage.workspace / "k.pem").read_text("utf-8") == WORDS


@pytest.mark.only("bubblewrap")
def test_what_is_closed_cannot_be_changed_either(cage: Cage, rules: Rules):
    run(cage, rules, "echo x > k.pem; echo x > private/new; rm -rf private k.pem")
    assert sorted(path.name for path in (cage.workspace / "private").iterdir()) == ["a.txt", "deep"]
    assert (cage.workspace / "k.pem").read_text("utf-8") == WORDS


def test_the_rest_of_the_workspace_is_open(cage: Cage, rules: Rules):
    assert run(cage, rules, "cat plain; echo x > new; cat new") == "plainx\n"


@pytest.mark.only("bubblewrap")
def test_a_rule_that_comes_later_holds_for_the_next_command(cage: Cage, rules: Rules):
    assert run(cage, Rules(), "cat k.pem") == WORDS
    assert WORDS not in run(cage, rules, "cat k.pem")


def test_the_profile_for_macos_closes_them_after_it_opens_the_workspace(cage: Cage, rules: Rules):
    places = unreadable_places(rules, cage.workspace)
    policy = policy_for(cage.sandbox().wishes, cage.outside, network=False, unreadable=places)
    lines = seatbelt_profile(policy).splitlines()
    closed = next(i for i, line in enumerate(lines) if "(deny file-read*" in line and "k.pem" in line)
    opened = next(
        i for i, line in enumerate(lines) if "file-write*" in line and f'"{cage.workspace}")' in line
    )
    assert opened < closed


def test_nothing_outside_of_the_workspace_is_closed_this_way(cage: Cage, rules: Rules):
    places = (cage.workspace, cage.outside, Path("/etc"))
    assert policy_for(cage.sandbox().wishes, cage.outside, network=False, unreadable=places).unreadable == ()
