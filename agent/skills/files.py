"""The files of a skill besides its `SKILL.md`."""

import os
from collections.abc import Iterator
from pathlib import Path

from agent.core.outside_text import decoded
from agent.skills.parse import Skill, SkillError

MOST_FILES = 40
LARGEST_FILE_BYTES = 64 * 1024
_MOST_LOOKED_AT = 2000


def files_of(skill: Skill) -> list[str]:
    """Files in the skill's folder, by their name from there with `/`, sorted; at most 40."""
    own = skill.file.name
    return sorted(name for name in _names(skill.folder) if name != own)[:MOST_FILES]


def read_file(skill: Skill, name: str) -> str:
    """The text of one file of the skill, at most its first 64 KiB.

    Raises:
        SkillError: there is no such text file in the skill's folder; a link out of it is none.
    """
    wanted = name.strip().removeprefix("./")
    try:
        path = (skill.folder / wanted).resolve()
        if not path.is_relative_to(skill.folder):
            raise SkillError(f"{name} is outside of the skill")
        if not path.is_file():
            raise SkillError(f"the skill {skill.name} has no file {name}; {_listed(skill)}")
        with path.open("rb") as stream:
            content = stream.read(LARGEST_FILE_BYTES + 1)
    except (OSError, RuntimeError, ValueError) as error:
        raise SkillError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    text = decoded(content[:LARGEST_FILE_BYTES])
    if text is None:
        raise SkillError(f"{name} is no text")
    cut = "\n(the rest is left out: the file is too big)" if len(content) > LARGEST_FILE_BYTES else ""
    return text + cut


def _listed(skill: Skill) -> str:
    names = files_of(skill)
    return f"its files are {', '.join(names)}" if names else "it has no other files"


def _names(folder: Path) -> Iterator[str]:
    looked_at = 0
    for current, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "__pycache__")
        for name in sorted(names):
            looked_at += 1
            if looked_at > _MOST_LOOKED_AT:
                return
            if not name.startswith("."):
                yield (Path(current) / name).relative_to(folder).as_posix()
