"""The wheel, installed where there is no checkout, is the whole program."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartServer
from tests.fakes.script import Step, call

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@dataclass(frozen=True)
class Installation:
    """A clean environment with nothing but the wheel and what it depends on."""

    python: Path
    home: Path

    def environment(self, **more: str) -> dict[str, str]:
        """Neither the checkout nor the settings of whoever runs the tests can be seen in it."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("AGENT_", "PYTHON", "XDG_"))
        }
        return kept | {"HOME": str(self.home)} | more

    def agent(self, *arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.python.parent / "agent", *arguments],
            cwd=folder,
            env=self.environment(**environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    folder = tmp_path_factory.mktemp("wheel")
    python = folder / "env" / "bin" / "python"
    uv = shutil.which("uv")
    if uv:
        execute(uv, "build", "--wheel", "--out-dir", folder, ROOT)
        execute(uv, "venv", "--python", sys.executable, folder / "env")
        execute(uv, "pip", "install", "--python", python, wheel_in(folder))
    else:
        execute(sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT)
        # Neither a pip of its own nor compiled files are needed for a few commands, and both take long.
        execute(sys.executable, "-m", "venv", "--without-pip", folder / "env")
        pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile")
        execute(*pip, wheel_in(folder))
    home = folder / "home"
    home.mkdir()
    return Installation(python, home)


def wheel_in(folder: Path) -> Path:
    (wheel,) = folder.glob("dflash_agent-*.whl")
    return wheel


def execute(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_says_its_version(installation: Installation, tmp_path: Path):
    done = installation.agent("--version", folder=tmp_path)
    assert done.stdout.startswith("agent ")
    assert (done.returncode, done.stderr) == (0, "")


def test_help_names_the_main_command(installation: Installation, tmp_path: Path):
    done = installation.agent("--help", folder=tmp_path)
    assert done.returncode == 0
    assert "run" in done.stdout


def test_profiles_came_along(installation: Installation, tmp_path: Path):
    done = installation.agent("profile", "list", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    for path in (ROOT / "server_profiles").glob("*.toml"):
        assert path.stem in done.stdout


def test_drafter_came_along_and_is_found_there(installation: Installation, tmp_path: Path):
    done = installation.agent("model", "list", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (drafter,) = (file for file in json.loads(done.stdout) if file["profiles"] == ["embedded-dflash"])
    assert drafter["state"] == "ready"
    assert installation.python.parents[1] in Path(drafter["path"]).parents


def test_package_is_taken_from_the_wheel(installation: Installation, tmp_path: Path):
    done = subprocess.run(
        [installation.python, "-c", "import agent, tools; print(agent.__file__, tools.__file__)"],
        cwd=tmp_path,
        env=installation.environment(),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    assert str(ROOT) not in done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """The example with a bug, as a git repository with one commit."""
    folder = Path(shutil.copytree(ROOT / "examples" / "first-fix", tmp_path / "first-fix"))
    identity = ["-c", "user.name=Test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"]
    for arguments in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", "Before"]):
        execute("git", "-C", folder, *arguments)
    return folder


def finishing(body: Mapping[str, Any]) -> Step:
    """The end of the work in either tool protocol: only the constrained one has a tool for it."""
    return call("finish", answer="Fixed.") if body.get("response_format") else Step(text="Fixed.")


def test_does_the_main_job_in_another_folder(
    installation: Installation, repository: Path, scripted_server: StartServer
):
    wrong = "Span(merged[-1].start, booking.end)"
    right = "Span(merged[-1].start, max(merged[-1].end, booking.end))"
    server = scripted_server(
        call("read", path="booking.py"),
        call("edit", path="booking.py", old=wrong, new=right),
        finishing,
        api_key="secret",
    )

    done = installation.agent(
        *("run", "-p", "Fix taken() in booking.py.", "--check", "python3 -m unittest -q"),
        folder=repository,
        AGENT_SERVER_URL=f"{server.url}/v1",
        AGENT_SERVER_API_KEY_ENV="SCRIPTED_KEY",
        SCRIPTED_KEY="secret",
    )

    assert done.returncode == 0, done.stderr
    assert right in (repository / "booking.py").read_text(encoding="utf-8")
    assert "Traceback" not in done.stderr
    assert 2 <= len(server.chats) <= 3
