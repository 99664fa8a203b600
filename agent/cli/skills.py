"""`agent skills`: instructions for kinds of work that the model reads when it needs them (agentskills.io)."""

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.skills.discover import Found

# Characters of a description; the standard allows 1024.
_LONGEST_ON_A_TERMINAL = 200
_LONGEST_ELSEWHERE = 2000


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds `skills` with its actions."""
    parser = subparsers.add_parser(
        "skills",
        help="list, show, check and add skills",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(func=list_skills, json=False)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")

    action = actions.add_parser("list", help="all skills that count in this folder, nearest first")
    action.add_argument("--json", action="store_true", help="as JSON, with what is left out and why")
    action.set_defaults(func=list_skills)

    action = actions.add_parser("show", help="what a skill says and is allowed")
    action.add_argument("name", metavar="NAME", help="as `agent skills list` has it")
    action.set_defaults(func=show)

    action = actions.add_parser("new", help="begin a skill of this project")
    action.add_argument("name", metavar="NAME", help="small letters, digits and hyphens")
    action.add_argument("--user", action="store_true", help="for you, in every project")
    action.add_argument("--description", metavar="TEXT", default="", help="what it does and when to use it")
    action.set_defaults(func=new)

    action = actions.add_parser("validate", help="check skills against the specification")
    action.add_argument(
        "path", metavar="PATH", nargs="*", help="a skill's folder or its name (default: all of yours)"
    )
    action.set_defaults(func=validate)

    action = actions.add_parser("add", help="copy a skill into your own folder")
    action.add_argument("path", metavar="PATH", help="a folder that has a SKILL.md")
    action.add_argument("--project", action="store_true", help="into this project instead")
    action.set_defaults(func=add)


def list_skills(arguments: argparse.Namespace) -> int:
    """Prints all skills; what is wrong with any goes to stderr."""
    from agent.app.extras.skill_report import as_rows, listed, remarks
    from agent.cli.columns import in_columns
    from agent.cli.wrapping import terminal_width, wrapped

    report = listed(Path.cwd(), os.environ)
    if arguments.json:
        import json

        print(json.dumps(report, indent=2, ensure_ascii=False))
        return 0
    width = terminal_width(sys.stdout)
    rows = as_rows(report, _LONGEST_ON_A_TERMINAL if width else _LONGEST_ELSEWHERE)
    for line, row in zip(in_columns(rows), rows, strict=True):
        print(wrapped(line, width, hang=len(line) - len(row[-1])))
    for line in remarks(report):
        print(line, file=sys.stderr)
    return 0


def show(arguments: argparse.Namespace) -> int:
    """Prints one skill."""
    from agent.app.extras.extensions import find_skills
    from agent.app.extras.skill_report import shown
    from agent.core.errors import UsageError
    from agent.core.likeness import did_you_mean
    from agent.skills.parse import SkillError

    found = find_skills(Path.cwd(), os.environ)
    skill = found.get(arguments.name)
    if skill is None:
        names = [each.name for each in found.skills]
        hint = did_you_mean(arguments.name, names, "`agent skills list` lists them", cutoff=0.5)
        raise UsageError(f"there is no skill {arguments.name!r}", hint)
    try:
        print("\n".join(shown(skill, found, Path.cwd(), os.environ)))
    except SkillError as error:
        raise UsageError(f"the skill {skill.name} cannot be read: {error}") from None
    return 0


def new(arguments: argparse.Namespace) -> int:
    """Writes a skill to be filled in, and prints where."""
    from agent.skills.place import create

    print(create(arguments.name, _folder(in_project=not arguments.user), arguments.description))
    return 0


def validate(arguments: argparse.Namespace) -> int:
    """Prints what is wrong. Exit code 1 when something is."""
    from agent.app.extras.extensions import find_skills
    from agent.core.errors import ExitCode, UsageError
    from agent.core.outside_text import one_line
    from agent.skills.parse import find_file
    from agent.skills.validate import problems_of

    found = find_skills(Path.cwd(), os.environ)
    folders = [_folder_of(text, found) for text in arguments.path]
    for position, folder in enumerate(folders):
        if folder.is_file():
            folders[position] = folder.parent
        elif not folder.is_dir() or find_file(folder) is None:
            raise UsageError(
                f"there is no skill in {folder}",
                "name a folder that has a SKILL.md, or a skill of `agent skills list`",
            )
    if not folders:
        own = [skill.folder for skill in (*found.skills, *found.shadowed) if skill.scope != "bundled"]
        folders = [*own, *(skipped.folder for skipped in found.skipped)]
    if not folders:
        print("there are no skills of yours or of this project", file=sys.stderr)
    wrong = False
    for folder in folders:
        problems = problems_of(folder.absolute())
        wrong = wrong or bool(problems)
        for problem in problems:
            print(f"{one_line(str(folder), 400)}: {one_line(problem, 400)}")
        if not problems:
            print(f"{one_line(str(folder), 400)}: good")
    return int(ExitCode.NOT_SOLVED) if wrong else 0


def _folder_of(text: str, found: "Found") -> Path:
    """What is meant by a path or by the name of a skill; a folder goes first."""
    skill = None if Path(text).exists() else found.get(text)
    return skill.folder if skill else Path(text)


def add(arguments: argparse.Namespace) -> int:
    """Copies a skill, prints where, and says what it is allowed."""
    from agent.app.extras.skill_shelf import rules_of
    from agent.skills.parse import load_skill
    from agent.skills.place import add as copy

    target = copy(Path(arguments.path), _folder(in_project=arguments.project))
    print(target)
    skill = load_skill(target, "user")
    for warning in skill.warnings:
        print(f"{skill.name}: {warning}", file=sys.stderr)
    rules = rules_of(skill)[0]
    if rules and not arguments.project:
        allowed = ", ".join(rule.text for rule in rules)
        print(f"in use, it may do this without a question: {allowed}", file=sys.stderr)
    return 0


def _folder(*, in_project: bool) -> Path:
    from agent.config.load import find_project_root
    from agent.resources import config_folder, ensure_private_folder

    if in_project:
        return find_project_root(Path.cwd()) / ".agents/skills"
    return ensure_private_folder(config_folder()) / "skills"
