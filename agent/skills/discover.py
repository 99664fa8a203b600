"""Finding skills: of the project, of the person, and those that come with the program."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from agent.skills.parse import Scope, Skill, SkillError, SkippedSkill, find_file, load_skill

PROJECT_FOLDERS = (".agents/skills", ".agent/skills", ".claude/skills")
MOST_ENTRIES = 2000
"""So many entries of one folder are looked at."""


class Place(NamedTuple):
    """A folder that may hold skills. Skills whose folder is a link out of `within` are skipped."""

    folder: Path
    scope: Scope
    within: Path | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """`skills` by name, nearest first; `shadowed` have a name that a nearer one has."""

    skills: tuple[Skill, ...] = ()
    shadowed: tuple[Skill, ...] = ()
    skipped: tuple[SkippedSkill, ...] = field(default=())

    def get(self, name: str) -> Skill | None:
        return next((skill for skill in self.skills if skill.name == name), None)

    @property
    def has_own(self) -> bool:
        """Whether a skill is there that does not come with the program."""
        return any(skill.scope != "bundled" for skill in self.skills)


def folders_up(start: Path, root: Path) -> list[Path]:
    """`start` and the folders above it up to `root`, nearest first; only `start` if not below `root`."""
    start, root = start.resolve(), root.resolve()
    if not start.is_relative_to(root):
        return [start]
    return [folder for folder in (start, *start.parents) if folder.is_relative_to(root)]


def places(workspace: Path, root: Path, personal: Sequence[Path], bundled: Path | None) -> list[Place]:
    """Where to look, nearest first: the project from `workspace` up to `root`, the person, the program."""
    found = [
        Place(folder / name, "project", root.resolve())
        for folder in folders_up(workspace, root)
        for name in PROJECT_FOLDERS
    ]
    found += [Place(folder, "user") for folder in personal]
    return found + ([Place(bundled, "bundled")] if bundled is not None else [])


def discover(where: Iterable[Place]) -> Found:
    """Loads all skills at these places. Reads files, so call it in a thread.

    What cannot be used is in `skipped`; nothing is raised for it.
    """
    by_name: dict[str, Skill] = {}
    shadowed: list[Skill] = []
    skipped: list[SkippedSkill] = []
    seen: set[Path] = set()
    for place in where:
        for folder in _candidates(place, skipped):
            if (resolved := folder.resolve()) in seen:
                continue
            seen.add(resolved)
            try:
                skill = load_skill(folder, place.scope)
            except SkillError as error:
                skipped.append(SkippedSkill(folder, str(error)))
                continue
            if skill.name in by_name:
                shadowed.append(skill)
            else:
                by_name[skill.name] = skill
    return Found(tuple(by_name.values()), tuple(shadowed), tuple(skipped))


def _candidates(place: Place, skipped: list[SkippedSkill]) -> Iterator[Path]:
    try:
        entries = sorted(entry for entry in place.folder.iterdir() if not entry.name.startswith("."))
    except OSError:
        return
    if len(entries) > MOST_ENTRIES:
        skipped.append(SkippedSkill(place.folder, f"only the first {MOST_ENTRIES} entries are looked at"))
    for entry in entries[:MOST_ENTRIES]:
        try:
            if find_file(entry) is None:
                continue
            if place.within is not None and not entry.resolve().is_relative_to(place.within):
                skipped.append(SkippedSkill(entry, "it is a link out of the project"))
                continue
        except (OSError, RuntimeError) as error:
            skipped.append(SkippedSkill(entry, f"it cannot be looked into: {error}"))
            continue
        yield entry
