"""What is needed to start a server process, and the start itself."""

import json
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.core.errors import ServerError
from agent.core.whole_file import write_whole
from agent.server import record as records
from agent.server.caps import Capabilities
from agent.server.command import Command, Places
from agent.server.loopback import HOST
from agent.server.profile import Profile
from agent.server.standalone import child_environment, contact_host, in_folder, server_command

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
    """One server to be had: the one inside this program, or a llama-server binary.

    `start_seconds` limits the wait for readiness, 0 = by the size of the files; `busy_seconds` that for
    another server to come to the end of what it does. One that answers nothing at all, its health included,
    is taken for dead after `silent_seconds`, as by the sessions that it serves. `threads` 0 = automatic.
    `environment` is what the child's is made of. `degraded` says that `profile` is another one without its
    draft, `draft_limit` that it is another one whose drafts were longer than so many tokens (0: it is not),
    `batch_limit` the same of its batch.

    `command` is the embedded child's program, `--spec FILE` is added to it. `capabilities` are those of the
    llama-server that is run for a profile of that engine; their `source` is its path.

    `states_folder` is an existing folder where the server may keep the state of its slots, None: nowhere.
    `speeds_file` is where the speed of reading is kept that is to be measured first, None: it is known.
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
    busy_seconds: float = 5.0
    silent_seconds: float = 30.0
    command: tuple[str, ...] = EMBEDDED_COMMAND
    capabilities: Capabilities | None = None
    degraded: bool = False
    draft_limit: int = 0
    batch_limit: int = 0
    states_folder: Path | None = None
    speeds_file: Path | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    @property
    def is_embedded(self) -> bool:
        return self.profile.engine == "embedded"

    @property
    def threads_used(self) -> int:
        return self.threads or self.profile.threads or automatic_threads()

    @property
    def host(self) -> str:
        """Where the server is reached from here."""
        return HOST if self.is_embedded else contact_host(self.profile.host)

    @property
    def key_file(self) -> Path:
        """The file with the server's key: the profile's own, or one that is written for this start."""
        if self.profile.api_key_file and not self.is_embedded:
            return Path(self.profile.api_key_file).expanduser().absolute()
        return self.own_key_file

    @property
    def own_key_file(self) -> Path:
        return records.key_file(self.runtime_folder, self.fingerprint)

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


def command_of(plan: LaunchPlan, port: int) -> Command:
    """The command line of a llama-server.

    Raises:
        UsageError: it cannot do what the profile says.
    """
    if plan.capabilities is None:
        raise ServerError(f"no llama-server was looked for to serve profile {plan.profile.name!r}")
    places = Places(
        program=plan.capabilities.source,
        target=str(plan.model_path.absolute()),
        draft=str(plan.draft_path.absolute()) if plan.draft_path else "",
        port=port,
        threads=plan.threads_used,
    )
    return server_command(_with_states(plan), plan.capabilities, places, plan.own_key_file)


def _with_states(plan: LaunchPlan) -> Profile:
    """The profile with a folder for the states of slots, unless it names one of its own."""
    able = plan.capabilities is not None and plan.capabilities.knows("--slot-save-path")
    if plan.states_folder is None or plan.profile.slot_save_path or not able:
        return plan.profile
    return plan.profile.model_copy(update={"slot_save_path": str(plan.states_folder)})


def spec(plan: LaunchPlan, port: int) -> dict[str, Any]:
    """Everything the child has to know, as JSON; the key is only named by its file."""
    profile = plan.profile
    return {
        **profile.model_dump(include=_FOR_THE_CHILD),
        "profile": profile.name,
        "model_path": str(plan.model_path.absolute()),
        "draft_path": str(plan.draft_path.absolute()) if plan.draft_path else None,
        "threads": plan.threads_used,
        "port": port,
        "key_file": str(records.key_file(plan.runtime_folder, plan.fingerprint)),
        "record_file": str(records.record_file(plan.runtime_folder, plan.fingerprint)),
        "log_file": str(plan.log_file),
        "slot_save_path": str(plan.states_folder) if plan.states_folder else None,
    }


def spawn(plan: LaunchPlan, port: int) -> int:
    """Starts the child in a session of its own and returns its process id.

    Its output goes to the log, whose former content is kept as `….1`. `posix_spawn` because nothing here
    owns the process afterwards: it outlives the program that started it.

    Raises:
        OSError: a file or the program cannot be used.
        UsageError: the server cannot do what the profile says.
    """
    spec_path = records.spec_file(plan.runtime_folder, plan.fingerprint)
    environment = dict(plan.environment)
    if plan.is_embedded:
        content: dict[str, Any] = spec(plan, port)
        arguments = [*plan.command, "--spec", str(spec_path)]
    else:
        argv = command_of(plan, port).argv
        content = {"profile": plan.profile.name, "argv": argv}
        arguments = in_folder(plan.model_path.absolute().parent, argv)
        environment = child_environment(environment, plan.profile, _empty_folder(plan))
    write_whole(spec_path, json.dumps(content, indent=1))
    if plan.log_file.exists():
        plan.log_file.replace(plan.log_file.with_name(f"{plan.log_file.name}.1"))
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    return os.posix_spawn(
        arguments[0],
        arguments,
        environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(plan.log_file), append, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        setsigmask=(),
        setsigdef=(signal.SIGTERM, signal.SIGINT, signal.SIGPIPE),
    )


def _empty_folder(plan: LaunchPlan) -> Path:
    folder = plan.runtime_folder / "no-configuration"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


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
