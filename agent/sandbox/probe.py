"""Finds out which kind of sandbox works here, by trying it: a program that starts proves nothing.

A hardened container may let bubblewrap start and then run nothing, or run it without confining. So each kind
has to run a command that writes where it may, and fails to write and read where it must not.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agent.core.whole_file import write_whole
from agent.sandbox.probed import Probed

Wrap = Callable[["Trial", Sequence[str]], Sequence[str]]

_SECONDS = 10.0
_SCRIPT = (
    'echo x > "$1/inside"; (echo x > "$2/outside") 2>/dev/null; (echo x > "$1/../beside") 2>/dev/null; '
    'cat "$2/secret" 2>/dev/null; echo "confined$((6 * 7))"'
)
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Trial:
    """Folders of one attempt: the command may write to `workspace` and nowhere else, nor see `hidden`."""

    workspace: Path
    outside: Path
    hidden: Path
    temporary: Path


def try_out(wrap: Wrap, environment: Mapping[str, str], folder: Path | None = None) -> str:
    """Why confining with `wrap` does not work here; empty where it does.

    Args:
        folder: where the files for the attempt are made; a temporary one if not given.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="agent-probe-", dir=folder) as name:
            root = Path(os.path.realpath(name))
            trial = Trial(root / "work", root / "out", root / "out" / "secret", root / "tmp")
            for path in (trial.workspace, trial.outside, trial.temporary, trial.temporary / "var"):
                path.mkdir()
            trial.hidden.write_text("a-secret", encoding="utf-8")
            return _judged(trial, wrap, environment)
    except OSError as error:
        return error.strerror or str(error)
    except subprocess.TimeoutExpired:
        return f"it did not end within {_SECONDS:g} seconds"


def _judged(trial: Trial, wrap: Wrap, environment: Mapping[str, str]) -> str:
    script = ("/bin/sh", "-c", _SCRIPT, "sh", str(trial.workspace), str(trial.outside))
    done = subprocess.run(
        list(wrap(trial, script)),
        cwd=trial.workspace,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_SECONDS,
        start_new_session=True,
        check=False,
    )
    output = done.stdout.decode("utf-8", "replace")
    if "confined42" not in output:
        complaint = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return complaint[-1] if complaint else f"it ran nothing and ended with status {done.returncode}"
    if not (trial.workspace / "inside").exists():
        return "a command could not write to the workspace"
    if (trial.outside / "outside").exists() or (trial.workspace.parent / "beside").exists():
        return "a command could write outside of the workspace"
    if "a-secret" in output:
        return "a command could read what is hidden"
    return ""


def remembered(cache: Path | None, key: str) -> Probed | None:
    """What was found out before, where nothing has changed since that could matter."""
    if cache is None:
        return None
    try:
        record = json.loads(cache.read_text(encoding="utf-8"))
        if record["format"] != _FORMAT or record["key"] != key:
            return None
        return Probed(**{**record["found"], "reasons": tuple(record["found"]["reasons"])})
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def remember(cache: Path | None, key: str, found: Probed) -> None:
    """Keeps what works, so that the next session need not try; a failure is tried again each time."""
    if cache is None or found.kind == "none":
        return
    record: dict[str, Any] = {"format": _FORMAT, "key": key, "found": asdict(found)}
    with suppress(OSError):
        write_whole(cache, json.dumps(record))


def circumstances(program: str | None) -> str:
    """Changes whenever another answer is possible: kernel, boot, program, user, limits on namespaces."""
    parts = [os.uname().release, os.uname().machine, str(os.geteuid()), program or "-"]
    names = (
        "/proc/sys/kernel/random/boot_id",
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "/proc/sys/kernel/unprivileged_userns_clone",
        "/proc/sys/user/max_user_namespaces",
        "/proc/self/attr/current",
    )
    parts += [_content(name) for name in names]
    with suppress(OSError):
        status = Path(program or "").stat()
        parts.append(f"{status.st_size} {status.st_mtime_ns} {status.st_mode:o}")
    return "|".join(parts)


def _content(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8", errors="replace").strip("\0\n ")
    except OSError:
        return ""
