"""What makes two servers interchangeable, as one short text."""

import hashlib
import json
from pathlib import Path
from typing import Any

from agent.server.model_file import ModelFile
from agent.server.profile import Profile

SPEC_VERSION = 1
"""Raised when the child process starts to read the same profile differently."""


_ONLY_FOR_REQUESTS = {
    "name", "description", "dialect", "url", "api_key_env", "target", "draft", "threads", "sampling", "tools",
    "model_card", "card", "batch_seconds",
}  # fmt: skip
"""What the server is not started with, and what is counted in another way.

A batch that fits the machine changes nothing about what a server has read and kept."""


def fingerprint(
    profile: Profile, models_folder: Path, threads: int = 0, binary: str = "", *, as_written: bool = False
) -> str:
    """Identifies everything that matters for a running server: model files and parameters.

    What is sent with each request (sampling, tool protocol, hints) does not count, so that profiles that
    differ only in those share a server. Costs no hashing of model files: their sha256 is in the profile;
    a file without one counts by path, size and time of change.

    Args:
        threads: the person's setting, 0 = what the profile says.
        binary: the program that the person names. Another version of an installed one does not count: what
            runs goes on until it is restarted.
        as_written: it is to be another one than the server whose batch fits the machine.
    """
    facts: dict[str, Any] = {
        "version": SPEC_VERSION,
        "files": [_identity(file, models_folder) for file in profile.model_files],
        "threads": threads or profile.threads,
        **profile.model_dump(exclude=_ONLY_FOR_REQUESTS),
    }
    if binary and profile.engine == "llama-server":
        facts["binary"] = binary
    if as_written:
        facts["as_written"] = True
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode("utf-8")).hexdigest()[:32]


def _identity(file: ModelFile, models_folder: Path) -> str:
    if file.sha256:
        return file.sha256
    path = file.path_in(models_folder)
    try:
        status = path.stat()
    except OSError:
        return str(path)
    return f"{path}:{status.st_size}:{status.st_mtime_ns}"
