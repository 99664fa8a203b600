"""What a person can do about a model file that is not there."""

from pathlib import Path

from agent.server.model_file import ModelFile


def is_downloadable(file: ModelFile) -> bool:
    """Whether the profile says where to fetch the file; a copy on this machine does not count."""
    return any(source.kind != "file" for source in file.sources)


def how_to_get(file: ModelFile, path: Path | None = None) -> str:
    """The hint of an error about `file`. PROFILE in it stands for the name of the profile.

    Args:
        path: where the file belongs, if that is known.
    """
    if is_downloadable(file):
        return "get it with `agent model pull`"
    place = f"at {path}" if path else "into the models folder"
    return (
        f"the file is for you to supply: put it {place}, or name another file or a source in a profile "
        "of your own (`agent profile new NAME --from PROFILE`)"
    )
