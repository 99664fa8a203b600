"""The header of a model file that is not here yet, so that a person can plan before a big download.

What is fetched is the beginning of the file. It is kept as a sparse file of the full size, which takes only
the room of its beginning and is read like any model file: weights are sized by the list in the header.
"""

import json
import subprocess
from pathlib import Path

from agent.core.errors import ModelFileError
from agent.core.private_folder import make_private_folder
from agent.server.missing import how_to_get
from agent.server.model_file import HubSource, ModelFile
from agent.server.profile import Profile
from agent.server.sources import QUIET_HUB, Means, SourceFailedError, describe_on_hub, hub_order

HEADER_BYTES = 16 * 1024 * 1024
"""More than the largest vocabularies need: 262,144 tokens with their merges take about 13 MB."""

_SECONDS = 120.0


def headers_from_hub(
    profile: Profile,
    folder: Path,
    means: Means | None = None,
    header_bytes: int = HEADER_BYTES,
    models_folder: Path | None = None,
) -> dict[str, Path]:
    """Fetches the headers of the profile's model files, those that are in `folder` excepted.

    Args:
        header_bytes: how much of each file is fetched.
        models_folder: files that are there need no header; None = there are none.

    Returns:
        For each file name of the profile where its header is.

    Raises:
        ModelFileError: a file has no source on the hub, or the hub cannot be reached.
    """
    means = means or Means()
    make_private_folder(folder)
    missing = [
        file for file in profile.model_files if models_folder is None or not file.found_in(models_folder)
    ]
    return {file.file: _header(file, folder, means, header_bytes) for file in missing}


def _header(file: ModelFile, folder: Path, means: Means, header_bytes: int) -> Path:
    sources = [source for source in file.sources if isinstance(source, HubSource)]
    if not sources:
        raise ModelFileError(f"{file.file} has no source on Hugging Face", how_to_get(file))
    reasons = []
    for source in sources:
        try:
            described, pinned = describe_on_hub(source, file, means)
            path = folder / f"{(described.sha256 or '')[:16]}-{Path(file.file).name}"
            if not path.exists():
                _fetch(described, pinned, path, means, header_bytes)
            return path
        except SourceFailedError as error:
            reasons.append(f"Hugging Face {source.repo}: {error}")
    raise ModelFileError(
        f"the header of {file.file} cannot be had: {'; '.join(reasons)}",
        "check the connection, or get the whole file with `agent model pull`",
    )


def _fetch(file: ModelFile, source: HubSource, path: Path, means: Means, header_bytes: int) -> None:
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    order = json.dumps({**hub_order(source, file), "part": str(part), "first_bytes": header_bytes})
    try:
        done = subprocess.run(
            [*means.hub_command, order],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={**means.environment, **QUIET_HUB},
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SourceFailedError(f"nothing complete came within {_SECONDS:.0f} s") from error
    except OSError as error:
        raise SourceFailedError(f"cannot run {means.hub_command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        lines = done.stderr.decode("utf-8", "replace").split("\n")
        raise SourceFailedError(next((line for line in reversed(lines) if line.strip()), "it failed"))
    with part.open("r+b") as opened:
        opened.truncate(file.bytes)
    part.replace(path)
