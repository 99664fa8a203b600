"""What makes two servers interchangeable, as one short text."""

import hashlib
import json
from pathlib import Path
from typing import Any

from agent.server.profile import ModelFile, Profile

SPEC_VERSION = 1
"""Raised when the child process starts to read the same profile differently."""


def fingerprint(profile: Profile, models_folder: Path, threads: int = 0) -> str:
    """Identifies everything that matters for a running server: model files and parameters.

    What is sent with each request (sampling, tool protocol, hints) does not count, so that profiles that
    differ only in those share a server. Costs no hashing of model files: their sha256 is in the profile;
    a file without one counts by path, size and time of change.

    Args:
        threads: the person's setting, 0 = what the profile says.
    """
    facts: dict[str, Any] = {
        "version": SPEC_VERSION,
        "files": [_identity(file, models_folder) for file in profile.model_files],
        "threads": threads or profile.threads,
        **profile.model_dump(
            include={
                "engine",
                "context",
                "slots",
                "batch",
                "ubatch",
                "kv_type_k",
                "kv_type_v",
                "flash_attention",
                "gpu_layers",
                "cache_ram_mib",
                "port",
                "speculation",
            }
        ),
    }
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
