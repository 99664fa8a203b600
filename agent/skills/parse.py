"""Reading one skill: a folder with `SKILL.md`, in the format of agentskills.io, leniently."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from agent.core.outside_text import decoded, one_line
from agent.skills.matter import MatterError, split

Scope = Literal["project", "user", "bundled"]

FILE_NAMES = ("SKILL.md", "skill.md")
LONGEST_NAME = 64
LONGEST_DESCRIPTION = 1024
LARGEST_FILE_BYTES = 256 * 1024
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


class SkillError(Exception):
    """A skill that cannot be used; the message says why, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """A skill that can be used. `folder` is resolved; `warnings` are what is wrong and does no harm.

    `allowed_tools` are the words as written. `for_model` is whether the model may choose it by itself.
    """

    name: str
    description: str
    folder: Path
    file: Path
    scope: Scope
    allowed_tools: tuple[str, ...] = ()
    for_model: bool = True
    takes: str = ""
    license: str = ""
    compatibility: str = ""
    warnings: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class SkippedSkill:
    """A folder that looks like a skill and cannot be used, and why."""

    folder: Path
    reason: str


def find_file(folder: Path) -> Path | None:
    """The `SKILL.md` of a folder, if it has one."""
    return next((folder / name for name in FILE_NAMES if (folder / name).is_file()), None)


def read_text(file: Path, folder: Path) -> str:
    """The whole `SKILL.md`, tidy.

    Raises:
        SkillError: it is no text, too big, unreadable, or a link out of its folder.
    """
    try:
        if not file.resolve().is_relative_to(folder.resolve()):
            raise SkillError(f"{file.name} is a link to a file outside of the skill")
        if not file.is_file():
            raise SkillError(f"{file.name} is not a regular file")
        with file.open("rb") as stream:
            content = stream.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise SkillError(f"{file.name} cannot be read: {error.strerror or error}") from None
    if len(content) > LARGEST_FILE_BYTES:
        raise SkillError(f"{file.name} is bigger than {LARGEST_FILE_BYTES // 1024} KiB")
    text = decoded(content)
    if text is None:
        raise SkillError(f"{file.name} is no text")
    return text


def load_skill(folder: Path, scope: Scope) -> Skill:
    """Reads the skill in `folder`, which has a `SKILL.md`.

    Raises:
        SkillError: it has no description, or its front matter cannot be understood.
    """
    file = find_file(folder)
    if file is None:
        raise SkillError("there is no SKILL.md")
    try:
        document = split(read_text(file, folder))
    except MatterError as error:
        raise SkillError(str(error)) from None
    matter = document.matter
    description = _line(matter.get("description"), 10 * LONGEST_DESCRIPTION)
    if not description:
        missing = "there is no description" if matter else "there is no front matter, so no description"
        raise SkillError(missing)
    name, problems = _named(matter.get("name"), folder.name)
    if document.mended:
        problems.append("a value with a colon needs quotes to be YAML")
    if len(description) > LONGEST_DESCRIPTION:
        problems.append(f"the description has more than {LONGEST_DESCRIPTION} characters")
    return Skill(
        name=name,
        description=description,
        folder=folder.resolve(),
        file=file,
        scope=scope,
        allowed_tools=tool_words(matter.get("allowed-tools", matter.get("allowed_tools"))),
        for_model=matter.get("disable-model-invocation") is not True,
        takes=_line(matter.get("argument-hint"), 80),
        license=_line(matter.get("license"), 80),
        compatibility=_line(matter.get("compatibility"), 500),
        warnings=tuple(problems),
    )


def body_of(skill: Skill) -> str:
    """What the skill says, without its front matter. Raises SkillError."""
    try:
        return split(read_text(skill.file, skill.folder)).body
    except MatterError as error:
        raise SkillError(str(error)) from None


def usable_name(text: str) -> str:
    """The nearest name that can be typed behind a slash; empty if nothing is left."""
    words = re.sub(r"[^a-z0-9]+", "-", one_line(text, 10 * LONGEST_NAME).lower()).strip("-")
    return words[:LONGEST_NAME].strip("-")


def name_problem(name: str) -> str:
    """What is wrong with a name by the specification; empty for a good one."""
    if len(name) > LONGEST_NAME:
        return f"the name has more than {LONGEST_NAME} characters"
    if not _NAME.fullmatch(name):
        return "the name may only have small letters, digits and single hyphens between them"
    return ""


def tool_words(value: Any) -> tuple[str, ...]:
    """The tools of `allowed-tools`: words or a list, with blanks and commas inside brackets kept."""
    items: Sequence[Any] = value if isinstance(value, list) else [value]
    found: list[str] = []
    for item in items:
        if isinstance(item, str):
            found += re.findall(r"[^\s,()]+(?:\([^)]*\))?", one_line(item, 4000))
    return tuple(dict.fromkeys(found))


def _named(value: Any, folder_name: str) -> tuple[str, list[str]]:
    written = str(value) if isinstance(value, str | int | float) else ""
    fallback = usable_name(folder_name) or "skill"
    if not written.strip():
        return fallback, [f"there is no name; the folder's is used: {fallback}"]
    name = written.strip()
    problem = name_problem(name)
    if problem:
        name = usable_name(written) or fallback
        return name, [f"{problem}; it is called {name} here"]
    if name != folder_name:
        return name, [f"the name differs from the folder's, {one_line(folder_name, LONGEST_NAME)}"]
    return name, []


def _line(value: Any, limit: int) -> str:
    """A text on one line. Lists and tables are none: a few YAML aliases in them can stand for gigabytes."""
    if isinstance(value, list):
        value = " ".join(item for item in value if isinstance(item, str))
    if value is None or not isinstance(value, str | int | float) or isinstance(value, bool):
        return ""
    return one_line(str(value), limit)
