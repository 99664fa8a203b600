"""The sandbox of a session as its settings want it, and how the person's mode decides about commands."""

import asyncio
from pathlib import Path

import pytest

from agent.app.turns.confining import homes, required_or_refused, sandbox_for
from agent.app.turns.workbench import mode_for
from agent.config.layers import Layer, Origin
from agent.config.load import guarded_keys
from agent.config.model import SandboxSettings, Settings
from agent.core.confinement import ConfinementError
from agent.core.events import Event, NetworkAccess, Notice
from agent.resources import config_folder, state_folder
from agent.sandbox.probed import Probed
from agent.sandbox.proxy import Verdict


@pytest.mark.parametrize(
    ("network", "unattended", "expected"),
    [
        ("auto", True, False),
        ("auto", False, True),
        ("allow", True, True),
        ("listed", False, False),
        ("off", False, False),
    ],
)
def test_the_network_is_off_where_nobody_watches_unless_the_settings_decide(
    tmp_path: Path, network: str, unattended: bool, expected: bool
):
    settings = Settings(sandbox=SandboxSettings.model_validate({"network": network}))
    sandbox = sandbox_for(tmp_path, settings, {}, unattended=lambda: unattended)
    assert sandbox.network() is expected


@pytest.mark.parametrize(
    ("network", "reached"), [("auto", True), ("listed", True), ("allow", True), ("off", False)]
)
def test_listed_hosts_are_reached_unless_the_network_is_off(tmp_path: Path, network: str, reached: bool):
    section = SandboxSettings.model_validate({"network": network, "hosts": ("example.org",)})
    sandbox = sandbox_for(tmp_path, Settings(sandbox=section), {}, unattended=lambda: True)
    assert sandbox.hosts.covers("example.org", 443) is reached


def test_a_host_that_is_none_is_a_mistake_in_the_settings():
    with pytest.raises(ValueError, match="no addresses of pages"):
        SandboxSettings.model_validate({"hosts": ("https://example.org",)})


async def test_what_is_decided_about_hosts_is_an_event_and_a_refusal_is_shown_once(tmp_path: Path):
    events: list[Event] = []
    settings = Settings(sandbox=SandboxSettings(hosts=("example.org",)))
    sandbox = sandbox_for(tmp_path, settings, {}, unattended=lambda: True, emit=events.append)
    for verdict in (
        Verdict("example.org", 443, True, "listed"),
        Verdict("other.example", 443, False, "not allowed"),
        Verdict("other.example", 443, False, "not allowed"),
    ):
        await asyncio.to_thread(sandbox.told, verdict)
    await asyncio.sleep(0)
    refused = NetworkAccess(host="other.example", port=443, allowed=False, reason="not allowed")
    assert events == [
        NetworkAccess(host="example.org", port=443, allowed=True, reason="listed"),
        refused,
        Notice(text="the sandbox: not allowed", level="warning"),
        refused,
    ]


def test_settings_and_state_of_the_program_are_hidden(tmp_path: Path):
    sandbox = sandbox_for(tmp_path, Settings(), {}, unattended=lambda: True)
    assert sandbox.wishes.private == (config_folder(), state_folder())


def test_folders_of_the_settings_are_taken_from_the_workspace_and_the_home(tmp_path: Path):
    settings = Settings(sandbox=SandboxSettings(writable=("~/.gradle", "sub"), hidden=("secret",)))
    wishes = sandbox_for(tmp_path, settings, {}, unattended=lambda: True).wishes
    assert wishes.writable == (Path.home() / ".gradle", tmp_path / "sub")
    assert wishes.hidden == (tmp_path / "secret",)


def test_secrets_are_looked_for_in_both_home_folders(tmp_path: Path):
    assert homes({"HOME": str(tmp_path)})[0] == tmp_path
    assert homes({}) == homes({"HOME": "relative"})


async def test_a_session_that_demands_a_sandbox_does_not_begin_without_one(tmp_path: Path):
    settings = Settings(sandbox=SandboxSettings(mode="required"))
    sandbox = sandbox_for(tmp_path, settings, {}, unattended=lambda: True)
    sandbox.find = lambda: Probed("none", reasons=("bubblewrap: not installed",))
    with pytest.raises(ConfinementError) as refused:
        await required_or_refused(sandbox)
    assert "bubblewrap: not installed" in str(refused.value)
    assert "sandbox.mode" in refused.value.hint


def test_commands_in_the_sandbox_are_judged_as_in_auto_where_the_person_wants_it():
    assert mode_for("shell", "ask", confined=True) == "auto"
    assert mode_for("shell", "ask", confined=False) == "ask"
    assert mode_for("write", "ask", confined=True) == "ask"
    assert mode_for("shell", "plan", confined=True) == "plan"


def layer(**values: object) -> Layer:
    found = {f"sandbox.{name}": value for name, value in values.items()}
    return Layer(found, {key: Origin("project") for key in found})


@pytest.mark.parametrize(
    ("project", "own", "guarded"),
    [
        ({"mode": "off"}, {}, True),
        ({"mode": "required"}, {}, False),
        ({"mode": "auto"}, {"mode": "required"}, True),
        ({"network": "allow"}, {}, True),
        ({"network": "off"}, {}, False),
        ({"network": "listed"}, {}, False),
        ({"network": "listed"}, {"network": "off"}, True),
        ({"network": "auto"}, {"network": "allow"}, False),
        ({"hosts": ("example.org",)}, {}, True),
        ({"hosts": ("example.org",)}, {"hosts": ("example.org", "pypi.org")}, False),
        ({"auto_allow": True}, {}, True),
        ({"auto_allow": False}, {"auto_allow": True}, False),
        ({"writable": ("/",)}, {}, True),
        ({"writable": ("~/x",)}, {"writable": ("~/x", "~/y")}, False),
        ({"hidden": ("private",)}, {}, False),
        ({"hidden": ()}, {"hidden": ("private",)}, True),
    ],
)
def test_a_project_makes_the_sandbox_stricter_and_not_looser(project, own, guarded: bool):
    assert bool(guarded_keys(layer(**project), layer(**own))) is guarded
