"""What a confined command may reach, from the folders of a session. Looks at files, runs nothing."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from agent.sandbox.git_folders import GitFolders, git_folders
from agent.sandbox.secrets import secret_places

TEMPORARY = Path("/", "tmp")
_TEMPORARY_TOO = Path("/", "var", "tmp")

UNSET_VARIABLES = (
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GPG_AGENT_INFO",
    "DBUS_SESSION_BUS_ADDRESS",
    "DBUS_SYSTEM_BUS_ADDRESS",
    "DOCKER_HOST",
    "CONTAINER_HOST",
    "XAUTHORITY",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "TMUX",
    "XDG_RUNTIME_DIR",
)
"""They lead to programs outside that would do what the sandbox does not allow."""

_CACHES = {
    "GOCACHE": "go-build",
    "UV_CACHE_DIR": "uv",
    "npm_config_cache": "npm",
    "PRE_COMMIT_HOME": "pre-commit",
}
"""Caches that their programs cannot do without; the real ones may only be read."""


@dataclass(frozen=True, slots=True)
class WayOut:
    """How listed hosts are reached from a sandbox that has no network.

    Attributes:
        socket: where a proxy listens.
        local_ports: hosts and ports of this machine that are listed.
    """

    socket: Path
    local_ports: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """All paths are absolute and free of symbolic links, and exist.

    Attributes:
        workspace: may be changed, as may be all of `writable`.
        kept: may be read and not changed, although they lie in something that may be.
        hidden: look empty or are not there.
        unreadable: lie in something that may be changed, and can neither be read nor changed.
        readable: may be read although they lie in something hidden or in the system's temporary folder.
        temporary: a folder of the session's own that takes the place of `/tmp`.
        network: whether the network may be used.
        variables: environment variables of the command on top of its own.
        way_out: to listed hosts; only bubblewrap can offer it.
    """

    workspace: Path
    writable: tuple[Path, ...] = ()
    kept: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    unreadable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    temporary: Path
    network: bool
    variables: Mapping[str, str]
    way_out: WayOut | None = None

    @property
    def all_writable(self) -> tuple[Path, ...]:
        return (self.workspace, *self.writable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the settings and the session say. Paths may not exist and may be symbolic links.

    Attributes:
        homes: home folders in which secrets are looked for.
        private: the program's own settings and state, which commands neither see nor change.
        readable: what lies in there and may be read.
    """

    workspace: Path
    homes: tuple[Path, ...]
    environment: Mapping[str, str]
    writable: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    private: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()


def policy_for(wishes: Wishes, temporary: Path, *, network: bool, unreadable: Iterable[Path] = ()) -> Policy:
    """What the wishes come to on this machine, now. `unreadable` is what rules keep from being read."""
    workspace = Path(os.path.realpath(wishes.workspace))
    git = git_folders(workspace)
    roots = () if git.root in (None, workspace) else (git.root,)
    secret = secret_places(wishes.homes, wishes.environment)
    hidden = _real((*secret, *wishes.hidden, *wishes.private))
    return Policy(
        workspace=workspace,
        writable=_without({workspace}, _real((*git.writable, *wishes.writable))),
        kept=_real(_kept(workspace, git)),
        hidden=_without({workspace}, hidden),
        unreadable=tuple(path for path in _real(unreadable) if workspace in path.parents),
        readable=_real((*wishes.readable, *_programs(wishes.environment), *roots)),
        temporary=Path(os.path.realpath(temporary)),
        network=network,
        variables=_variables(wishes.environment),
    )


def _kept(workspace: Path, git: GitFolders) -> Iterable[Path]:
    yield workspace / ".agent"
    yield from git.kept


def _programs(environment: Mapping[str, str]) -> Iterable[Path]:
    """Folders of programs that lie in a temporary folder would vanish with it."""
    folders = temporary_folders()
    for name in ("PATH", "VIRTUAL_ENV"):
        for part in environment.get(name, "").split(os.pathsep):
            if part.startswith("/") and _is_below(Path(os.path.realpath(part)), folders):
                yield Path(part)


def is_temporary(path: Path) -> bool:
    """Whether a real path lies in a folder that everybody may write to, but is not such a folder itself."""
    return _is_below(path, temporary_folders())


def _is_below(path: Path, folders: Iterable[Path]) -> bool:
    return any(folder in path.parents for folder in folders)


def temporary_folders() -> tuple[Path, ...]:
    return tuple(dict.fromkeys(Path(os.path.realpath(name)) for name in (TEMPORARY, _TEMPORARY_TOO)))


def _variables(environment: Mapping[str, str]) -> dict[str, str]:
    caches = {
        name: f"{TEMPORARY}/.cache/{folder}" for name, folder in _CACHES.items() if name not in environment
    }
    return {"TMPDIR": str(TEMPORARY), **caches}


def variables_elsewhere(policy: Policy) -> dict[str, str]:
    """The policy's variables where there is one `/tmp` for everybody, and none can be put in its place."""
    return {
        name: value.replace(str(TEMPORARY), str(policy.temporary), 1)
        for name, value in policy.variables.items()
    }


def _real(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Those that exist, resolved, each once."""
    found: dict[Path, None] = {}
    for path in paths:
        # Most secrets are not there, and resolving a path takes long. A way back may lead to what is.
        if not os.path.lexists(path) and ".." not in path.parts:
            continue
        try:
            real = Path(os.path.realpath(path))
            if real.is_absolute() and os.path.lexists(real):
                found[real] = None
        except (OSError, ValueError):
            continue
    return tuple(found)


def _without(unwanted: Iterable[Path], paths: tuple[Path, ...]) -> tuple[Path, ...]:
    left_out = set(unwanted)
    return tuple(path for path in paths if path not in left_out)
