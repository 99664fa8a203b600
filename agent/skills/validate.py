"""What is wrong with a skill by the specification, which is stricter than what is loaded."""

import re
from pathlib import Path

from agent.skills.files import files_of
from agent.skills.matter import MatterError, split
from agent.skills.parse import (
    LONGEST_DESCRIPTION,
    SkillError,
    find_file,
    load_skill,
    name_problem,
    read_text,
)

KNOWN_KEYS = frozenset(
    {"name", "description", "license", "compatibility", "metadata", "allowed-tools", "argument-hint"}
    | {"disable-model-invocation"}
)
LONGEST_COMPATIBILITY = 500
MOST_BODY_LINES = 500
_LINK = re.compile(r"\]\((?!\w+:|#|/)([^)\s#]+)")


def problems_of(folder: Path) -> list[str]:
    """All that is wrong with the skill in `folder`, worst first; empty for a good one. Reads files."""
    try:
        skill = load_skill(folder, "user")
        document = split(read_text(skill.file, skill.folder))
    except (SkillError, MatterError) as error:
        return [f"it cannot be loaded: {error}"]
    matter = document.matter
    problems = list(skill.warnings)
    if find_file(folder) != folder / "SKILL.md":
        problems.append("the file is called SKILL.md, in capitals")
    if name_problem(folder.name):
        problems.append(f"the folder's name is no name for a skill: {name_problem(folder.name)}")
    if not isinstance(matter.get("description"), str):
        problems.append("the description is no text")
    if len(skill.description) > LONGEST_DESCRIPTION and not skill.warnings:
        problems.append("the description is too long")
    if len(str(matter.get("compatibility", ""))) > LONGEST_COMPATIBILITY:
        problems.append(f"compatibility has more than {LONGEST_COMPATIBILITY} characters")
    unknown = sorted(set(matter) - KNOWN_KEYS)
    if unknown:
        problems.append(f"unknown in the front matter: {', '.join(unknown)}; own keys belong below metadata")
    lines = document.body.strip().split("\n")
    if not document.body.strip():
        problems.append("it says nothing besides its description")
    if len(lines) > MOST_BODY_LINES:
        problems.append(
            f"it has {len(lines)} lines; more than {MOST_BODY_LINES} belong into files of their own"
        )
    names = set(files_of(skill))
    targets = dict.fromkeys(_LINK.findall(document.body))
    lost = [name for name in targets if name not in names and not (skill.folder / name).exists()]
    return problems + [f"it refers to {name}, which is not there" for name in lost]
