"""What `agent skills list` and `show` say."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.app.extras.extensions import find_skills
from agent.app.extras.skill_shelf import rules_of, shown_place, trusted_names
from agent.config.load import find_project_root
from agent.core.outside_text import one_line
from agent.skills.discover import Found
from agent.skills.files import files_of
from agent.skills.parse import Skill, body_of


def listed(workspace: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    """`skills`, `shadowed` and `skipped` as plain data. Reads files."""
    found = find_skills(workspace, environment)
    root = find_project_root(workspace)
    trusted = trusted_names(found, environment)
    return {
        "skills": [_row(skill, root, trusted=skill.name in trusted) for skill in found.skills],
        "shadowed": [_row(skill, root, trusted=False) for skill in found.shadowed],
        "skipped": [
            {"folder": one_line(str(skipped.folder), 400), "reason": one_line(skipped.reason, 400)}
            for skipped in found.skipped
        ],
    }


def as_rows(report: Mapping[str, Any], longest: int) -> list[tuple[str, str, str]]:
    """Name, origin and description of each skill, a description of at most `longest` characters."""
    return [
        (
            row["name"],
            row["origin"] if row["trusted"] else f"{row['origin']}, not trusted",
            one_line(row["description"], longest),
        )
        for row in report["skills"]
    ]


def remarks(report: Mapping[str, Any]) -> list[str]:
    """What is wrong with skills, in lines for people."""
    lines = [f"{row['name']}: {warning}" for row in report["skills"] for warning in row["warnings"]]
    lines += [f"{row['name']} in {row['place']}: hidden by a nearer one" for row in report["shadowed"]]
    lines += [f"left out: {row['folder']}: {row['reason']}" for row in report["skipped"]]
    untrusted = [row["name"] for row in report["skills"] if not row["trusted"]]
    if untrusted:
        lines.append(f"`agent trust` lets you look at these and trust them: {', '.join(untrusted[:20])}")
    return lines


def shown(skill: Skill, found: Found, workspace: Path, environment: Mapping[str, str]) -> list[str]:
    """One skill for people. Raises SkillError."""
    is_trusted = skill.name in trusted_names(found, environment)
    rules, unknown = rules_of(skill)
    facts = {
        "name": skill.name,
        "origin": skill.scope if is_trusted else f"{skill.scope}, not trusted",
        "folder": str(skill.folder),
        "description": skill.description,
        "allows": ", ".join(
            [*(rule.text for rule in rules), *(f"{word} (unknown here)" for word in unknown)]
        ),
        "license": skill.license,
        "needs": skill.compatibility,
        "files": ", ".join(files_of(skill)),
        "warnings": "; ".join(skill.warnings),
    }
    lines = [f"{name:<12} {one_line(value, 2000)}" for name, value in facts.items() if value]
    return [*lines, "", body_of(skill)]


def _row(skill: Skill, root: Path, *, trusted: bool) -> dict[str, Any]:
    return {
        "name": skill.name,
        "origin": skill.scope,
        "trusted": trusted,
        "place": one_line(shown_place(skill, root), 400),
        "description": skill.description,
        "allowed_tools": list(skill.allowed_tools),
        "warnings": list(skill.warnings),
    }
