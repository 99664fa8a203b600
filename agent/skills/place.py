"""Putting skills somewhere: a new one to be filled in, or a copy of one that lies elsewhere."""

import os
import shutil
import tempfile
from pathlib import Path

from agent.core.errors import UsageError
from agent.skills.parse import SkillError, find_file, load_skill, name_problem

LARGEST_SKILL_BYTES = 16 * 1024 * 1024
MOST_FILES = 1000

TEMPLATE = """---
name: {name}
description: {description}
---

# {title}

1. First step.
2. Second step.
"""


def create(name: str, folder: Path, description: str = "") -> Path:
    """Writes `<folder>/<name>/SKILL.md` to be filled in, and returns its path.

    Raises:
        UsageError: no good name, it is there already, or it cannot be written.
    """
    problem = name_problem(name)
    if problem:
        raise UsageError(f"{name!r} is no name for a skill: {problem}", "for example: review-a-diff")
    text = TEMPLATE.format(
        name=name,
        description=_quoted(description or "What this does. Use it when ..."),
        title=name.replace("-", " ").capitalize(),
    )
    target = folder / name
    _refuse_if_there(target)
    with _Beside(target) as new:
        (new / "SKILL.md").write_text(text, encoding="utf-8")
        _move(new, target)
    return target / "SKILL.md"


def add(source: Path, folder: Path) -> Path:
    """Copies the skill in `source`, a folder or its `SKILL.md`, below `folder`; returns the new folder.

    Links out of the skill are refused, links inside are kept as files.

    Raises:
        UsageError: there is no skill, it is there already, too big, or it cannot be copied.
    """
    source = source.parent if source.is_file() else source
    if not source.is_dir() or find_file(source) is None:
        raise UsageError(f"there is no skill in {source}", "name a folder that has a SKILL.md")
    try:
        skill = load_skill(source, "user")
    except SkillError as error:
        raise UsageError(f"the skill in {source} cannot be used: {error}") from None
    target = folder / skill.name
    _refuse_if_there(target)
    with _Beside(target) as new:
        _copy(source.resolve(), new)
        _move(new, target)
    return target


def _copy(source: Path, target: Path) -> None:
    total = count = 0
    for current, folders, names in os.walk(source):
        folders[:] = [name for name in folders if name != ".git"]
        for name in folders:
            if (Path(current) / name).is_symlink():
                raise UsageError(
                    f"{Path(current) / name} is a link to a folder", "put the files themselves there"
                )
        for name in names:
            file = Path(current) / name
            if not file.is_file() or not file.resolve().is_relative_to(source):
                raise UsageError(f"{file} is no file of the skill", "put the file itself there, not a link")
            total, count = total + file.stat().st_size, count + 1
            if total > LARGEST_SKILL_BYTES or count > MOST_FILES:
                raise UsageError(
                    f"{source} is too big for a skill",
                    f"at most {MOST_FILES} files and {LARGEST_SKILL_BYTES // 1024 // 1024} MiB",
                )
            copy = target / file.relative_to(source)
            try:
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, copy)
            except OSError as error:
                raise UsageError(f"{file} cannot be copied: {error.strerror or error}") from None


class _Beside:
    """A folder beside `target` that is gone afterwards, unless it was moved."""

    def __init__(self, target: Path) -> None:
        self._target = target

    def __enter__(self) -> Path:
        try:
            self._target.parent.mkdir(parents=True, exist_ok=True)
            self._folder = Path(tempfile.mkdtemp(prefix=".new-", dir=self._target.parent))
        except OSError as error:
            raise UsageError(f"{self._target.parent} cannot be written: {error.strerror or error}") from None
        return self._folder

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def _move(new: Path, target: Path) -> None:
    new.chmod(0o755)
    try:
        new.rename(target)
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror or error}") from None


def _refuse_if_there(target: Path) -> None:
    if target.exists() or target.is_symlink():
        raise UsageError(f"{target} is there already", "remove it first, or choose another name")


def _quoted(text: str) -> str:
    import json

    return json.dumps(" ".join(text.split()), ensure_ascii=False)
