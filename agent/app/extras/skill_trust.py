"""Trust in the skills of a project, given by `agent trust`: for each the very `SKILL.md` that was shown."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agent.app.extras.skill_shelf import rules_of
from agent.config.trust import TrustStore
from agent.core.outside_text import one_line
from agent.skills.discover import PROJECT_FOLDERS, discover, places
from agent.skills.parse import Skill, find_file


@dataclass(frozen=True, slots=True)
class OpenSkill:
    """A skill of a project that is not trusted as it is now. `content` are the bytes that were looked at."""

    skill: Skill
    content: bytes

    def as_line(self) -> str:
        rules, unknown = rules_of(self.skill)
        wants = [rule.text for rule in rules] + [f"{word} (unknown here)" for word in unknown]
        allowed = f"; may then use {', '.join(wants)} without a question" if wants else ""
        return one_line(f"{self.skill.name}: {self.skill.description[:100]}{allowed}", 400)


def open_skills(start: Path, root: Path, environment: Mapping[str, str]) -> list[OpenSkill]:
    """The project's skills from `start` up to `root` that are not trusted as they are now. Reads files."""
    store = TrustStore.of(environment)
    found = discover(places(start, root, (), None))
    still_open = []
    for skill in (*found.skills, *found.shadowed):
        try:
            content = skill.file.read_bytes()
        except OSError:
            continue
        if not store.trusts(skill.folder, content):
            still_open.append(OpenSkill(skill, content))
    return still_open


def trust_skills(skills: list[OpenSkill], environment: Mapping[str, str]) -> None:
    store = TrustStore.of(environment)
    for one in skills:
        store.trust(one.skill.folder, one.content)


def revoke_skills(root: Path, environment: Mapping[str, str]) -> int:
    """Forgets the skills below `root`; returns how many were trusted."""
    store = TrustStore.of(environment)
    top = root.resolve()
    skills = [Path(name) for name in store.entries() if skill_file(Path(name)) is not None]
    return sum(store.revoke(folder) for folder in skills if folder.is_relative_to(top))


def skill_file(folder: Path) -> Path | None:
    """The file that an entry of the record of trust is about, if it is about a skill and not a project."""
    if not any(folder.parent.as_posix().endswith(f"/{name}") for name in PROJECT_FOLDERS):
        return None
    return find_file(folder) or folder / "SKILL.md"
