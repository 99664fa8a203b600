"""Commands of git that write, through GitPython: objects, trees, references and the index.

They work on a given repository and index, whatever the environment says, and discard nothing.
"""

import os
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agent.core.errors import AgentError
from agent.core.quiet_git import FOREIGN_VARIABLES, QUIET_VARIABLES, SAFE_CONFIG, find_git
from agent.core.waiting_pipes import nobody_waits_for_pipes
from agent.repo.git_process import MISSING, Answer, ask, config_variables
from agent.repo.selection import is_folder
from agent.repo.state import RepoState

if TYPE_CHECKING:
    from types import ModuleType

_WRITE_SECONDS = 60.0
_LOCK_ATTEMPTS = 20
_LOCK_PAUSE_SECONDS = 0.1
_WHICH_GIT = "GIT_PYTHON_GIT_EXECUTABLE"
"""Where GitPython looks for the path of git, when it is imported."""
_ONE_LOADS = threading.Lock()


class Plumbing:
    """Runs git commands that write, through GitPython, on the repository and index that are meant."""

    def __init__(
        self, state: RepoState, index: Path | None = None, *, overrides: Iterable[tuple[str, str]] = ()
    ) -> None:
        git = _gitpython()
        environment = {name: "" for name in FOREIGN_VARIABLES if name in os.environ}
        environment |= config_variables(os.environ, overrides)
        if "GIT_OBJECT_DIRECTORY" in environment:
            environment["GIT_OBJECT_DIRECTORY"] = str(state.common_dir / "objects")
        environment |= QUIET_VARIABLES
        environment["GIT_DIR"] = str(state.git_dir)
        environment["GIT_COMMON_DIR"] = str(state.common_dir)
        environment["GIT_WORK_TREE"] = str(state.root)
        environment["GIT_INDEX_FILE"] = str(index or state.git_dir / "index")
        self._root = state.root
        self._git = git.Git(state.root)
        self._git.update_environment(**environment)
        self._git.set_persistent_git_options(c=list(SAFE_CONFIG))

    def run(self, command: str, *arguments: str, data: bytes = b"") -> str:
        """The output of a git command that reads `data`, without the last line end.

        Raises:
            AgentError: git refused or took longer than a minute.
        """
        with tempfile.TemporaryFile() as stdin, nobody_waits_for_pipes(self._root):
            stdin.write(data)
            stdin.seek(0)
            code, output, complaint = getattr(self._git, command.replace("-", "_"))(
                *arguments,
                istream=stdin,
                with_extended_output=True,
                with_exceptions=False,
                kill_after_timeout=_WRITE_SECONDS,
            )
        if code != 0:
            raise AgentError(f"git {command} failed: {Answer(code, b'', complaint).first_error}")
        return output


def _gitpython() -> "ModuleType":
    """GitPython with the git that all other calls use.

    By itself it runs the first one on PATH when it is imported, which may lie in the present folder.

    Raises:
        AgentError: there is no git.
    """
    program = find_git(os.environ)
    if program is None:
        raise AgentError(MISSING)
    # Runs of a batch come here at the same time, from threads, and the environment is that of all.
    with _ONE_LOADS:
        before = os.environ.get(_WHICH_GIT)
        os.environ[_WHICH_GIT] = program
        try:
            import git

            if program != git.Git.GIT_PYTHON_GIT_EXECUTABLE:
                git.refresh(program)
        finally:
            os.environ.pop(_WHICH_GIT, None)
            if before is not None:
                os.environ[_WHICH_GIT] = before
    return git


def write_trees(git: Plumbing, state: RepoState, wanted: Sequence[str]) -> tuple[str, str]:
    """The ids of the last commit's tree and of the same tree with the present content of `wanted`."""
    git.run("read-tree", state.head or "--empty")
    old_tree = git.run("write-tree")
    present = [
        name for name in wanted if os.path.lexists(state.root / name) and not is_folder(state.root / name)
    ]
    gone = sorted(set(wanted) - set(present))
    # First what is gone: a file can have made way for a folder of the same name.
    git.run("update-index", "-z", "--force-remove", "--stdin", data=nul_ended(gone))
    git.run("update-index", "-z", "--add", "--remove", "--stdin", data=nul_ended(present))
    return old_tree, git.run("write-tree")


def update_index(state: RepoState, old_tree: str, new_tree: str) -> str:
    """Takes the commit's files over into the index. A note for people if that is not possible."""
    listing = ask(state.root, ["diff-tree", "-r", "-z", "--no-renames", "--no-abbrev", old_tree, new_tree])
    words = os.fsdecode(listing.output).split("\0")
    entries = bytearray()
    for meta, name in zip(words[::2], words[1::2], strict=False):
        _, mode, _, content, _ = meta.split(" ")
        entries += os.fsencode(f"{mode if mode != '000000' else '0'} {content}\t{name}\0")
    git = Plumbing(state)
    problem = ""
    for _ in range(_LOCK_ATTEMPTS):
        try:
            git.run("update-index", "-z", "--index-info", data=bytes(entries))
            return ""
        except AgentError as error:
            problem = error.message
            if "index.lock" not in problem:
                break
            time.sleep(_LOCK_PAUSE_SECONDS)  # another git is at work in this repository
    return f"the commit is made, but its files look changed until you run git add on them ({problem})"


def nul_ended(names: Iterable[str]) -> bytes:
    """Names in the form in which git reads them from its input."""
    return b"".join(os.fsencode(name) + b"\0" for name in names)
