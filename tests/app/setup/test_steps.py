"""The steps of a set-up: each can be repeated, and what goes wrong leaves a usable state."""

import os
from pathlib import Path

import pytest

from agent.app.servers.serving import Serving, choose
from agent.app.setup.option import Option
from agent.app.setup.options import running_option
from agent.app.setup.steps import SetupRun
from agent.app.setup.writing import described_writes, link_file, unfinished, write_remote_profile
from agent.config.load import LoadedSettings, load_settings
from agent.core.errors import ServerError
from agent.server.engines import identify
from tests.app.setup.rig import Machine
from tests.conftest import StartServer
from tests.fakes.script import Step

ALWAYS = Step(text="class Task: pass", drafted=6, accepted=3, times=0)


class Lines:
    """Keeps what the person would see in the end."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    def show(self, text: str, essence: str | None = None) -> None: ...

    def end(self, text: str = "") -> None:
        self.ended += [text] if text else []


@pytest.fixture
def home(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    for name, value in machine.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(machine.folder)
    return machine


def option_for(url: str, profile: str = "box-1") -> Option:
    option = running_option(identify(url), profile)
    assert option is not None
    return option


def run_of(option: Option, lines: Lines | None = None, serve=choose) -> SetupRun:
    return SetupRun(option=option, environment=os.environ, line=lines or Lines(), serve=serve)


def test_running_server_is_measured_and_written_to_the_settings(home: Machine, scripted_server: StartServer):
    server = scripted_server(ALWAYS)
    path = home.configure('# mine\nprofile = "embedded"  # for now\n')
    work = run_of(option_for(server.url))
    work.run()
    assert path.read_text("utf-8") == '# mine\nprofile = "box-1"  # for now\n'
    assert [(one.name, one.state) for one in work.results] == [
        ("install", "there"), ("pull", "there"), ("start", "done"), ("measure", "done"), ("write", "done"),
    ]  # fmt: skip
    assert work.speed is not None
    assert work.speed.decode_rate == 100
    loaded = load_settings(None, os.environ, {})
    assert choose(loaded).profile.url == server.url
    assert unfinished(os.environ) == ""


def test_second_time_nothing_is_measured_again(home: Machine, scripted_server: StartServer):
    server = scripted_server(ALWAYS)
    run_of(option_for(server.url)).run()
    before = len(server.chats)
    again = run_of(option_for(server.url))
    again.run()
    assert len(server.chats) == before
    assert {one.name: one.state for one in again.results}["measure"] == "there"


def test_server_that_cannot_be_measured_is_set_up_nevertheless(home: Machine, scripted_server: StartServer):
    server = scripted_server(*[{"fault": "http_500"}] * 20)
    lines = Lines()
    work = run_of(option_for(server.url), lines)
    work.run()
    assert {one.name: one.state for one in work.results}["measure"] == "failed"
    assert "measure: not measured: " in " ".join(lines.ended)
    assert (home.folder / "config" / "config.toml").read_text("utf-8") == 'profile = "box-1"\n'


def test_server_that_is_gone_leaves_the_settings_alone_and_is_gone_on_with(
    home: Machine, scripted_server: StartServer
):
    server = scripted_server(ALWAYS)
    option = option_for(server.url)
    server.close()
    work = run_of(option)
    with pytest.raises(ServerError):
        work.run()
    assert work.current == "start"
    assert not (home.folder / "config" / "config.toml").exists()
    assert unfinished(os.environ) == "box-1"


def test_interruption_is_remembered_with_its_step(home: Machine, scripted_server: StartServer):
    def interrupted(loaded: LoadedSettings) -> Serving:
        raise KeyboardInterrupt

    work = run_of(option_for(scripted_server(ALWAYS).url), serve=interrupted)
    with pytest.raises(KeyboardInterrupt):
        work.run()
    assert (work.current, unfinished(os.environ)) == ("start", "box-1")


def test_address_in_the_settings_does_not_outlive_a_setup(home: Machine, scripted_server: StartServer):
    home.configure('[server]\nurl = "http://127.0.0.1:1"\n')
    server = scripted_server(ALWAYS)
    run_of(option_for(server.url)).run()
    loaded = load_settings(None, os.environ, {})
    assert (loaded.settings.server.url, loaded.settings.profile) == ("", "box-1")


def test_profile_of_the_person_is_never_overwritten(home: Machine, scripted_server: StartServer):
    folder = home.folder / "config" / "profiles"
    folder.mkdir(parents=True)
    own = folder / "box-1.toml"
    own.write_text('extends = "remote"\nurl = "http://127.0.0.1:5"\n', "utf-8")
    assert write_remote_profile(option_for(scripted_server(ALWAYS).url), os.environ) is None
    assert "127.0.0.1:5" in own.read_text("utf-8")


def test_what_will_be_written_is_told_before(home: Machine, scripted_server: StartServer):
    lines = described_writes(
        option_for(scripted_server(ALWAYS).url), load_settings(None, os.environ, {}), os.environ
    )
    assert lines[0].startswith('profile = "box-1" in ')
    assert lines[1].endswith("box-1.toml, with the address of the server")


def test_file_of_another_program_is_linked(tmp_path: Path):
    found = tmp_path / "other.gguf"
    found.write_bytes(b"GGUF")
    place = tmp_path / "models" / "other.gguf"
    link_file(found, place)
    assert place.resolve() == found
    assert [path.name for path in place.parent.iterdir()] == ["other.gguf"]
