"""`agent trust`: lets a project's configuration file have its full say, after showing what it says.

Until then a project cannot loosen permissions, choose commands, or say where requests and models go.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.app.extras.command_trust import CustomCommand
    from agent.app.extras.skill_trust import OpenSkill
    from agent.app.mcp.servers import ProjectFile
    from agent.app.turns.formatters import OwnFormatter
    from agent.config.load import ProjectConfig


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds `trust`."""
    parser = subparsers.add_parser(
        "trust",
        help="let a project's .agent/config.toml set permissions and commands",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "path", metavar="PATH", nargs="?", default=".", help="a folder in the project (default: .)"
    )
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--revoke", action="store_true", help="trust the project no longer")
    action.add_argument("--list", action="store_true", help="list trusted folders")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Lists, revokes or grants trust. Exit code 1 when the person answers no."""
    if arguments.list:
        return _list()
    if arguments.revoke:
        return _revoke(Path(arguments.path))
    return _grant(Path(arguments.path), sure=arguments.yes)


def _list() -> int:
    from agent.config.text import printable
    from agent.config.trust import TrustStore, fingerprint

    for folder, trusted in TrustStore.of(os.environ).entries().items():
        try:
            changed = fingerprint(_content_of(Path(folder))) != trusted
        except OSError:
            changed = True
        note = "  (its configuration changed or is gone: asks again)" if changed else ""
        print(f"{printable(folder)}{note}")
    return 0


def _content_of(entry: Path) -> bytes:
    """What an entry of the record of trust is about, as it is now. Raises OSError."""
    from agent.app.extras.command_trust import is_about_command
    from agent.app.extras.skill_trust import skill_file
    from agent.app.mcp.servers import MCP_FILE
    from agent.app.turns.formatters import fingerprint_of, is_about_formatters, own_formatters
    from agent.config.load import project_config_file

    if is_about_formatters(entry):
        return fingerprint_of(own_formatters(entry.parent.parent))
    if entry.name == MCP_FILE or is_about_command(entry):
        return entry.read_bytes()
    return (skill_file(entry) or project_config_file(entry)).read_bytes()


def _revoke(path: Path) -> int:
    from agent.app.extras.command_trust import revoke_commands
    from agent.app.extras.skill_trust import revoke_skills
    from agent.app.mcp.servers import MCP_FILE
    from agent.app.turns.formatters import TRUST_NAME
    from agent.config.load import find_project_root
    from agent.config.trust import TrustStore

    # The folder itself may be gone; its name is enough to forget it.
    root = find_project_root(path) if path.is_dir() else path.absolute()
    texts = revoke_skills(root, os.environ) + revoke_commands(root, os.environ)
    store = TrustStore.of(os.environ)
    servers = store.revoke(root / MCP_FILE)
    formatters = store.revoke(root / TRUST_NAME)
    was_trusted = store.revoke(root) or texts > 0 or servers or formatters
    print(f"{root} {'is no longer trusted' if was_trusted else 'was not trusted'}", file=sys.stderr)
    return 0


def _root_of(path: Path) -> Path:
    from agent.config.load import find_project_root
    from agent.core.errors import UsageError

    if not path.is_dir():
        raise UsageError(f"{path} is not a folder", "name a folder of the project to trust")
    return find_project_root(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waiting:
    """What of a project is not trusted yet; None and empty where nothing of that kind is.

    The very bytes that are shown are trusted, not what the files may hold by then.
    """

    root: Path
    project: "ProjectConfig | None"
    skills: "list[OpenSkill]"
    commands: "list[CustomCommand]"
    servers: "ProjectFile | None"
    formatters: "Sequence[OwnFormatter]"

    @property
    def is_empty(self) -> bool:
        return not (self.project or self.skills or self.commands or self.servers or self.formatters)


def _grant(start: Path, *, sure: bool) -> int:
    from agent.config.text import printable
    from agent.core.errors import ExitCode, UsageError

    waiting = _waiting_in(start)
    if waiting.is_empty:
        print(f"{printable(str(waiting.root))} is trusted already", file=sys.stderr)
        return ExitCode.DONE
    print("\n".join(_shown(waiting)), file=sys.stderr)
    if not sure and not sys.stdin.isatty():
        raise UsageError("not trusted: nobody can be asked here", "run it in a terminal, or add --yes")
    if not sure and not _person_agrees():
        print("not trusted", file=sys.stderr)
        return ExitCode.NOT_SOLVED
    _trust(waiting)
    return ExitCode.DONE


def _waiting_in(start: Path) -> _Waiting:
    """Raises UsageError where the project has nothing that could be trusted."""
    from agent.app.extras.command_trust import open_commands
    from agent.app.extras.skill_trust import open_skills
    from agent.app.mcp.servers import read_project_file
    from agent.app.turns.formatters import open_formatters
    from agent.config.load import project_config_file, read_project_config
    from agent.config.text import printable
    from agent.config.trust import TrustStore
    from agent.core.errors import UsageError

    root = _root_of(start)
    project = read_project_config(root)
    skills = open_skills(start, root, os.environ)
    commands = open_commands(start, root, os.environ)
    servers = read_project_file(root, os.environ)
    formatters, has_formatters = open_formatters(root, os.environ)
    if project is None and not skills and not commands and servers is None and not has_formatters:
        raise UsageError(
            f"there is nothing to trust: {printable(str(project_config_file(root)))} does not exist, "
            "it asks for no formatter, and no skill or command waits for it",
            "name the project's folder, or create that file first",
        )
    is_new = project is not None and not TrustStore.of(os.environ).trusts(root, project.content)
    return _Waiting(
        root=root,
        project=project if is_new else None,
        skills=skills,
        commands=commands,
        servers=servers if servers is not None and not servers.trusted else None,
        formatters=formatters,
    )


def _trust(waiting: _Waiting) -> None:
    """Writes down that all of it is trusted, and says until when."""
    from agent.app.extras.command_trust import trust_commands
    from agent.app.extras.skill_trust import trust_skills
    from agent.app.turns.formatters import trust_formatters
    from agent.config.text import printable
    from agent.config.trust import TrustStore

    store = TrustStore.of(os.environ)
    trust_skills(waiting.skills, os.environ)
    trust_commands(waiting.commands, os.environ)
    trust_formatters(waiting.root, waiting.formatters, os.environ)
    if waiting.project is not None:
        store.trust(waiting.root, waiting.project.content)
        print(f"trusted until {printable(str(waiting.project.path))} changes", file=sys.stderr)
    if waiting.servers is not None:
        store.trust(waiting.servers.path, waiting.servers.content)
        print(f"trusted until {printable(str(waiting.servers.path))} changes", file=sys.stderr)
    for kind, count in (("skill", len(waiting.skills)), ("command", len(waiting.commands))):
        if count:
            what = f"it changes: 1 {kind}" if count == 1 else f"they change: {count} {kind}s"
            print(f"trusted until {what}", file=sys.stderr)
    if waiting.formatters:
        names = ", ".join(one.name for one in waiting.formatters)
        print(f"trusted until the project asks for others: {names}", file=sys.stderr)


def _shown(waiting: _Waiting) -> list[str]:
    from agent.app.extras.command_trust import as_lines
    from agent.app.mcp.servers import describe_for_trust
    from agent.app.turns.formatters import describe_formatters
    from agent.config.show import as_changes

    lines = as_changes(waiting.project, os.environ) if waiting.project is not None else []
    if waiting.servers is not None:
        lines += describe_for_trust(waiting.servers)
    if waiting.skills:
        lines.append("Skills of this project, whose text the model would follow like yours:")
        lines += [f"  ! {one.as_line()}" for one in waiting.skills]
    if waiting.commands:
        lines.append("Commands of this project, whose text the model would take for yours:")
        lines += [f"  ! {line}" for command in waiting.commands for line in as_lines(command)]
    return [*lines, *describe_formatters(waiting.formatters)]


def _person_agrees() -> bool:
    print("Trust it? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
