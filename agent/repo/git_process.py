"""How git is started, so that a repository cannot make it do more than asked.

Only `agent.repo` uses this. What keeps the programs from running that a repository's own configuration names
is in `agent.core.quiet_git`, but for filters, which `agent.repo.git` switches off by their names.
"""

import os
import signal
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agent.core.quiet_git import FOREIGN_VARIABLES, QUIET_VARIABLES, find_git, settings_words
from agent.core.waiting_pipes import nobody_waits_for_pipes

# How a question names what git would otherwise look for; what the environment says of it is dropped.
_CHOSEN = {f"AGENT_{name}": name for name in ("GIT_INDEX_FILE", "GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE")}

_DEAF = (subprocess.DEVNULL, subprocess.DEVNULL)

MISSING = "git is not installed or not on the PATH"


@dataclass(frozen=True, slots=True)
class Answer:
    """What git said. `code` is its exit status, 124 when it took too long, 127 when there is no git."""

    code: int
    output: bytes
    error: str

    @property
    def first_error(self) -> str:
        """The line that says what is wrong, without git's prefix."""
        lines = [line.strip() for line in self.error.splitlines() if line.strip()]
        chosen = next((line for line in lines if line.startswith(("fatal:", "error:"))), "".join(lines[:1]))
        return chosen.removeprefix("fatal: ").removeprefix("error: ") or f"exit status {self.code}"


def ask(
    folder: Path,
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    overrides: Iterable[tuple[str, str]] = (),
    data: bytes = b"",
    seconds: float = 20.0,
) -> Answer:
    """Runs `git ARGUMENTS` in `folder` without taking locks and waits for at most `seconds`.

    `data` goes to its standard input, `overrides` are configuration keys and values. A git that takes
    longer is killed with its children.
    """
    with asking(folder, arguments, environment=environment, overrides=overrides) as question:
        return question.answer(data, seconds)


@contextmanager
def asking(
    folder: Path,
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    overrides: Iterable[tuple[str, str]] = (),
) -> Iterator["Question"]:
    """Like `ask`, for a question that others are asked beside. A git that is left unheard is killed."""
    environment = os.environ if environment is None else environment
    question = _asked(folder, arguments, environment, overrides)
    try:
        yield question
    finally:
        question.drop()


class Question:
    """A git process that is on its way to an answer, or why there is none."""

    def __init__(
        self, folder: Path, name: str, process: "subprocess.Popen[bytes] | None", problem: str = ""
    ) -> None:
        self._folder, self._name, self._process, self._problem = folder, name, process, problem

    def answer(self, data: bytes = b"", seconds: float = 20.0) -> Answer:
        """Waits for it; see `ask`. Once."""
        process = self._process
        if process is None:
            return Answer(127, b"", self._problem)
        try:
            with nobody_waits_for_pipes(self._folder):
                output, complaint = process.communicate(data, timeout=seconds)
        except subprocess.TimeoutExpired:
            self.drop()
            return Answer(124, b"", f"git {self._name} took longer than {seconds:g} seconds")
        self._process = None
        return Answer(process.returncode, output, complaint.decode("utf-8", "replace"))

    def drop(self) -> None:
        """Ends a process whose answer nobody waits for any more."""
        process, self._process = self._process, None
        if process is not None:
            _kill(process)
            process.communicate()


def _asked(
    folder: Path,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    overrides: Iterable[tuple[str, str]],
) -> Question:
    git = find_git(environment)
    if git is None:
        return Question(folder, arguments[0], None, MISSING)
    try:
        process = _start(git, folder, arguments, child_environment(environment, overrides))
    except OSError as error:
        problem = f"git cannot be started in {folder}: {error.strerror or error}"
        return Question(folder, arguments[0], None, problem)
    return Question(folder, arguments[0], process)


def ask_for_names(
    folder: Path, arguments: Sequence[str], limit: int, seconds: float = 10.0
) -> list[str] | None:
    """The first `limit` names of a listing that ends each with NUL; None if git gives no listing.

    Reading stops as soon as there are enough. After `seconds` what has come so far is returned.
    """
    git = find_git(os.environ)
    if git is None:
        return None
    try:
        process = _start(git, folder, arguments, child_environment(os.environ, ()), streams=_DEAF)
    except OSError:
        return None
    watch = threading.Timer(seconds, _kill, [process])
    watch.daemon = True
    watch.start()
    with process, nobody_waits_for_pipes(folder):
        data = _read_names(process, limit)
        watch.cancel()
        _kill(process)
    if process.returncode not in (0, -signal.SIGKILL):
        return None
    return [os.fsdecode(name) for name in data.split(b"\0")[:-1][:limit]]


def _read_names(process: subprocess.Popen[bytes], limit: int) -> bytes:
    if process.stdout is None:
        return b""
    data = b""
    while data.count(b"\0") < limit and (chunk := os.read(process.stdout.fileno(), 1 << 16)):
        data += chunk
    return data


def child_environment(environment: Mapping[str, str], overrides: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The environment for a git process that only looks."""
    child = {name: value for name, value in environment.items() if name not in FOREIGN_VARIABLES}
    child |= QUIET_VARIABLES
    child["GIT_OPTIONAL_LOCKS"] = "0"
    for ours, name in _CHOSEN.items():
        if ours in child:
            child[name] = child.pop(ours)
    return child | config_variables(child, overrides)


def config_variables(environment: Mapping[str, str], overrides: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Configuration keys and values as variables, on top of those that `environment` has already."""
    # Variables rather than `-c`: a key may hold an equals sign.
    given = environment.get("GIT_CONFIG_COUNT") or ""
    variables: dict[str, str] = {}
    for number, (key, value) in enumerate(overrides, start=int(given) if given.isdigit() else 0):
        variables[f"GIT_CONFIG_KEY_{number}"] = key
        variables[f"GIT_CONFIG_VALUE_{number}"] = value
        variables["GIT_CONFIG_COUNT"] = str(number + 1)
    return variables


def index_variables(index: Path) -> dict[str, str]:
    """What to add to an environment for `ask` to look at another index than the repository's own."""
    return {"AGENT_GIT_INDEX_FILE": str(index)}


def place_variables(git_dir: Path, common_dir: Path, root: Path) -> dict[str, str]:
    """What to add to an environment for `ask` to look at this repository, whatever git would find itself."""
    return {
        "AGENT_GIT_DIR": str(git_dir),
        "AGENT_GIT_COMMON_DIR": str(common_dir),
        "AGENT_GIT_WORK_TREE": str(root),
    }


def start_talking(folder: Path, arguments: Sequence[str]) -> subprocess.Popen[bytes] | None:
    """A git process to talk with over its pipes; None where there is no git. Close both, and wait for it."""
    git = find_git(os.environ)
    if git is None:
        return None
    try:
        streams = (subprocess.PIPE, subprocess.DEVNULL)
        return _start(git, folder, arguments, child_environment(os.environ, ()), streams=streams)
    except OSError:
        return None


def _start(
    git: str,
    folder: Path,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    streams: tuple[int, int] = (subprocess.PIPE, subprocess.PIPE),
) -> subprocess.Popen[bytes]:
    """`streams` are those for standard input and errors."""
    return subprocess.Popen(
        [git, *settings_words(), *arguments],
        cwd=folder,
        env=environment,
        stdin=streams[0],
        stdout=subprocess.PIPE,
        stderr=streams[1],
        start_new_session=True,
    )


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
