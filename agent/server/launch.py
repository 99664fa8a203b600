"""What is needed to start a server process, and the start itself."""

import json
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.server import record as records
from agent.server.profile import Profile

EMBEDDED_COMMAND = (sys.executable, "-P", str(Path(__file__).with_name("embedded.py")))
"""`-P` keeps the current folder, which is the user's project, out of the child's imports."""

_BASE_SECONDS = 60.0
_BYTES_PER_SECOND = 25_000_000
"""A slow disk on a busy machine; the limit is there to end a wait for something that never comes."""


_FOR_THE_CHILD = {
    "context", "slots", "unified_kv", "batch", "ubatch", "kv_type_k", "kv_type_v", "flash_attention",
    "gpu_layers", "load_mode", "no_host", "cache_ram_mib", "checkpoints", "checkpoint_step", "cache_reuse",
    "swa_full", "jinja", "reasoning", "preserve_reasoning", "template_arguments", "speculation",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPlan:
    """One server to be had.

    `start_seconds` limits the wait for readiness, 0 = by the size of the files. `threads` 0 = automatic.
    `command` is the child program, `--spec FILE` is added to it. `environment` is the child's.
    """

    profile: Profile
    fingerprint: str
    model_path: Path
    draft_path: Path | None = None
    threads: int = 0
    runtime_folder: Path
    log_folder: Path
    start_seconds: float = 0.0
    stop_seconds: float = 5.0
    command: tuple[str, ...] = EMBEDDED_COMMAND
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    @property
    def log_file(self) -> Path:
        return self.log_folder / f"server-{self.profile.name}.log"

    @property
    def limit_seconds(self) -> float:
        """How long the server may take to become healthy."""
        if self.start_seconds:
            return self.start_seconds
        paths = [path for path in (self.model_path, self.draft_path) if path is not None and path.exists()]
        return _BASE_SECONDS + sum(path.stat().st_size for path in paths) / _BYTES_PER_SECOND


def spec(plan: LaunchPlan, port: int) -> dict[str, Any]:
    """Everything the child has to know, as JSON; the key is only named by its file."""
    profile = plan.profile
    return {
        **profile.model_dump(include=_FOR_THE_CHILD),
        "profile": profile.name,
        "model_path": str(plan.model_path.absolute()),
        "draft_path": str(plan.draft_path.absolute()) if plan.draft_path else None,
        "threads": plan.threads or profile.threads or automatic_threads(),
        "port": port,
        "key_file": str(records.key_file(plan.runtime_folder, plan.fingerprint)),
        "record_file": str(records.record_file(plan.runtime_folder, plan.fingerprint)),
        "log_file": str(plan.log_file),
    }


def spawn(plan: LaunchPlan, port: int) -> int:
    """Starts the child in a session of its own and returns its process id.

    Its output goes to the log, whose former content is kept as `….1`. `posix_spawn` because nothing here
    owns the process afterwards: it outlives the program that started it.

    Raises:
        OSError: a file or the program cannot be used.
    """
    spec_path = records.spec_file(plan.runtime_folder, plan.fingerprint)
    records.write_private(spec_path, json.dumps(spec(plan, port), indent=1))
    if plan.log_file.exists():
        plan.log_file.replace(plan.log_file.with_name(f"{plan.log_file.name}.1"))
    arguments = [*plan.command, "--spec", str(spec_path)]
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    return os.posix_spawn(
        arguments[0],
        arguments,
        dict(plan.environment),
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(plan.log_file), append, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        setsigmask=(),
        setsigdef=(signal.SIGTERM, signal.SIGINT, signal.SIGPIPE),
    )


def automatic_threads() -> int:
    """Physical cores this process may use, but both cores of a two-core machine.

    The engine's threads spin while they wait for each other, so more of them than there are cores, or than
    a container is allowed, makes it many times slower.
    """
    import psutil

    logical = psutil.cpu_count() or 1
    usable = len(os.sched_getaffinity(0)) if sys.platform == "linux" else logical
    cores = max(psutil.cpu_count(logical=False) or logical, min(2, logical))
    return max(1, min(cores, usable, container_limit() or usable))


def container_limit(quota_file: Path = Path("/sys/fs/cgroup/cpu.max")) -> int | None:
    """The CPU quota of the control group in whole cores, None when there is none."""
    try:
        quota, period = quota_file.read_text("ascii").split()
        return max(1, int(quota) // int(period))
    except (OSError, ValueError):
        return None
