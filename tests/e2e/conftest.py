"""The real command in a process of its own, with folders of its own, and a server that follows a script."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 240
AGENT = (sys.executable, "-m", "agent")
_NEVER_SEEN = ("Traceback (most recent call last)", "Exception ignored", "was never awaited")


@dataclass(frozen=True, slots=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def records(self) -> list[dict[str, Any]]:
        """Standard output as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def result(self) -> dict[str, Any]:
        """The last of the JSON lines."""
        return self.records[-1]

    @property
    def complaint(self) -> str:
        """What a person is told in the end: the last line on standard error that is no hint."""
        lines = [line for line in self.err.splitlines() if line and not line.startswith("hint: ")]
        return lines[-1] if lines else ""


@dataclass(slots=True)
class Place:
    """A home, a workspace and an environment that nothing of the machine's own settings reaches."""

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.workspace.mkdir()

    @property
    def workspace(self) -> Path:
        return self.folder / "work"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def config(self) -> Path:
        return self.folder / "config"

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        homes = {
            f"AGENT_{kind.upper()}_HOME": str(self.folder / kind) for kind in ("config", "state", "data")
        }
        return {
            **kept,
            **homes,
            "HOME": str(self.folder),
            "PYTHONPATH": str(ROOT),
            "PYTHONWARNINGS": "default::ResourceWarning",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            **self.variables,
        }

    def use(self, url: str) -> None:
        """Names the server that runs there."""
        self.variables["AGENT_SERVER_URL"] = url

    def run(
        self,
        *arguments: str,
        stdin: str | None = None,
        folder: Path | None = None,
        program: Sequence[str] = AGENT,
        environment: Mapping[str, str] | None = None,
    ) -> Done:
        """Runs `agent ARGUMENTS` to its end in `folder`, by default the workspace."""
        process = self.start(
            *arguments, folder=folder, program=program, stdin=subprocess.PIPE, environment=environment
        )
        return ended(process, stdin)

    def start(
        self,
        *arguments: str,
        folder: Path | None = None,
        program: Sequence[str] = AGENT,
        environment: Mapping[str, str] | None = None,
        **streams: Any,
    ) -> subprocess.Popen[str]:
        """Starts the command; streams that are not given are pipes, stdin is empty."""
        return subprocess.Popen(
            [*program, *arguments],
            cwd=folder or self.workspace,
            env={**self.environment, **(environment or {})},
            text=True,
            encoding="utf-8",
            **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams},
        )

    def sessions(self) -> list[list[dict[str, Any]]]:
        """The records of all sessions of this home, oldest first."""
        files = sorted(self.state.glob("sessions/*/*/events.jsonl"))
        return [[json.loads(line) for line in file.read_text("utf-8").splitlines()] for file in files]

    def write(self, name: str, text: str | bytes) -> Path:
        """Writes a file below the workspace."""
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
        return path

    def profile(self, name: str, text: str) -> None:
        """Writes a profile of the person's own."""
        path = self.config / "profiles" / f"{name}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def ended(process: subprocess.Popen[str], stdin: str | None = None) -> Done:
    """Waits for a started command."""
    try:
        out, err = process.communicate(stdin, timeout=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"it did not end; so far\n{out}\n{err}") from None
    for words in _NEVER_SEEN:
        assert words not in (err or ""), err
    return Done(process.returncode, out or "", err or "")


def is_running(pid: int) -> bool:
    """Whether a process is there and not only waiting to be collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def read_until(process: subprocess.Popen[str], kind: str) -> list[dict[str, Any]]:
    """Reads JSON lines of a running command up to the first of a type."""
    assert process.stdout is not None
    records: list[dict[str, Any]] = []
    for line in process.stdout:
        records.append(json.loads(line))
        if records[-1]["type"] == kind:
            return records
    raise AssertionError(f"no {kind} came: {records}\n{process.stderr.read() if process.stderr else ''}")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)
