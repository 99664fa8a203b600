"""Command lines for Landlock: a small program of ours confines itself and becomes the command."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from agent.sandbox.policy import UNSET_VARIABLES, Policy, temporary_folders, variables_elsewhere

ENTRY = Path(__file__).with_name("landlock_entry.py")
LEAST_ABI = 3
SCOPES_ABI = 6
_CREATE_RULESET = 444  # on every architecture
_ALL_DEVICES = Path("/dev")
_DEVICES = ("null", "zero", "full", "random", "urandom", "shm", "nvidia*", "kfd", "dri")


def landlock_version() -> int:
    """The version of Landlock that this kernel speaks; 0 where it has none or switches it off."""
    if not sys.platform.startswith("linux"):
        return 0
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(ctypes.c_long(_CREATE_RULESET), None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    return max(0, version)


def landlock_arguments(policy: Policy, arguments: Sequence[str]) -> list[str]:
    """The command line that runs `arguments` confined, in the folder that it is started in."""
    # Whoever may read a disk itself, as root may, reads what is hidden on it.
    shared = [*temporary_folders(), *(path for path in (Path("/run/user"), _ALL_DEVICES) if path.is_dir())]
    rules = {
        "hidden": [str(path) for path in (*policy.hidden, *shared) if path != policy.workspace],
        "readable": [str(path) for path in (*policy.readable, *entry_files(), *_runtime())],
        "writable": [str(path) for path in (*policy.all_writable, policy.temporary)],
        "devices": [str(path) for pattern in _DEVICES for path in sorted(_ALL_DEVICES.glob(pattern))],
        "network": policy.network,
        "filter_calls": True,
        "unset": UNSET_VARIABLES,
        "variables": variables_elsewhere(policy),
    }
    return [*_entry(rules), *arguments]


def scoped_arguments(arguments: Sequence[str]) -> list[str]:
    """For a command that something else confines: keeps it from sockets without a name in the file system."""
    return [*_entry({"files": False}), *arguments]


def entry_files() -> tuple[Path, ...]:
    """What of this program has to be readable inside."""
    own = str(ENTRY.resolve().parents[2])  # the tools have a file for the shell there
    names = (own, os.path.realpath(sys.executable), sys.prefix, sys.base_prefix)
    return tuple(Path(name) for name in names)


def _runtime() -> tuple[Path, ...]:
    resolver = Path(os.path.realpath("/etc/resolv.conf"))
    return (resolver,) if resolver.exists() else ()


def _entry(rules: dict[str, object]) -> list[str]:
    return [os.path.realpath(sys.executable), "-I", "-S", str(ENTRY), json.dumps(rules)]
