"""`agent profile`: lists, shows, checks and makes server profiles."""

import argparse
import os
import sys
from pathlib import Path


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds `profile` with `list`, `show`, `new`, `edit` and `validate`."""
    parser = subparsers.add_parser(
        "profile", help="list, show, check and make server profiles", description=__doc__
    )
    parser.set_defaults(func=run_list, json=False)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    listing = actions.add_parser("list", help="every profile that can be named")
    listing.add_argument("--json", action="store_true", help="a JSON array on stdout")
    listing.set_defaults(func=run_list)
    show = actions.add_parser("show", help="a profile with everything that it extends")
    show.add_argument("profile", metavar="PROFILE", help="a name, or a path to a .toml file")
    show.add_argument("--json", action="store_true", help="JSON instead of TOML")
    show.add_argument("--origins", action="store_true", help="with --json: also where each value comes from")
    show.set_defaults(func=run_show)
    new = actions.add_parser("new", help="write a profile of your own that starts from another one")
    new.add_argument("name", metavar="NAME", help="its name")
    new.add_argument(
        "--from", dest="base", metavar="PROFILE", help="what it starts from; default: the one of that name"
    )
    new.set_defaults(func=run_new)
    edit = actions.add_parser("edit", help="open a profile of your own in $VISUAL or $EDITOR, then check it")
    edit.add_argument("name", metavar="NAME", help="its name; of a shipped one a version of yours is made")
    edit.set_defaults(func=run_edit)
    validate = actions.add_parser("validate", help="check profiles; exit code 2 when one is wrong")
    validate.add_argument("profiles", nargs="*", metavar="PROFILE", help="names or paths; default: all")
    validate.set_defaults(func=run_validate)


def run_list(arguments: argparse.Namespace) -> int:
    """Prints name, description and file of each profile; a broken one with what is wrong."""
    from agent.core.errors import UsageError
    from agent.server.profile_files import list_profiles, load_profile

    rows = []
    for found in list_profiles(_folders()):
        try:
            description = load_profile(found.name, _folders()).description
        except UsageError as error:
            description = f"broken: {error.message}"
        rows.append({"name": found.name, "description": description, "path": str(found.path)})
    if arguments.json:
        import json

        print(json.dumps(rows, indent=2))
        return 0
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        print(f"{row['name']:<{width}}  {row['description']}")
    return 0


def run_show(arguments: argparse.Namespace) -> int:
    """Prints the whole profile as it will be used; what it leaves to another server is not there."""
    from agent.server.cards import AUTO, NONE, find_card
    from agent.server.profile_files import find_profile, load_profile
    from agent.server.profile_origins import value_origins, with_origins
    from agent.server.profile_text import whole_table

    profile = load_profile(arguments.profile, _folders())
    print(f"from {find_profile(arguments.profile, _folders())}", file=sys.stderr)
    table, origins = whole_table(profile), value_origins(arguments.profile, _folders())
    if arguments.json:
        import json

        print(json.dumps({**table, "origins": origins} if arguments.origins else table, indent=2))
        return 0
    print(with_origins(table, origins), end="")
    if profile.card not in (AUTO, NONE):
        card = find_card(profile.card, _folders())
        print(f"\n# {card.title}: what is known of such models ({card.path})")
        for trap in card.traps:
            print(f"# - {trap}")
    return 0


def run_validate(arguments: argparse.Namespace) -> int:
    """Checks each profile and reports all that are wrong; without names the model cards too."""
    from agent.core.errors import ExitCode, UsageError
    from agent.server.cards import list_cards
    from agent.server.profile_files import check_card, list_profiles, load_profile

    names = arguments.profiles or [found.name for found in list_profiles(_folders())]
    code = 0
    try:
        for card in () if arguments.profiles else list_cards(_folders()):
            check_card(card)
    except UsageError as error:
        print(f"agent: {error}", file=sys.stderr)
        code = int(ExitCode.USAGE)
    for name in names:
        try:
            load_profile(name, _folders())
        except UsageError as error:
            print(f"agent: {error}", file=sys.stderr)
            code = int(ExitCode.USAGE)
            continue
        print(f"{name}: ok", file=sys.stderr)
    return code


def run_new(arguments: argparse.Namespace) -> int:
    """Writes a commented TOML file into the person's folder."""
    path = _make(arguments.name, arguments.base)
    print(path)
    print(f"change it with `agent profile edit {arguments.name}`", file=sys.stderr)
    return 0


def run_edit(arguments: argparse.Namespace) -> int:
    """Opens the person's file, making it first where only a shipped one has that name."""
    import shlex
    import subprocess

    from agent.core.errors import ExitCode, UsageError
    from agent.server.profile_files import load_profile

    words = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
    if not words:
        raise UsageError("there is no editor: VISUAL and EDITOR are empty", "for example: export EDITOR=nano")
    path = _folders()[0] / f"{arguments.name}.toml"
    if not path.is_file():
        path = _make(arguments.name, arguments.name)
    try:
        status = subprocess.run([*words, str(path)], check=False).returncode
    except OSError as error:
        raise UsageError(
            f"cannot run the editor {words[0]}: {error.strerror}", "set VISUAL or EDITOR"
        ) from error
    if status:
        print(f"agent: the editor ended with status {status}", file=sys.stderr)
    try:
        load_profile(arguments.name, _folders())
    except UsageError as error:
        print(f"agent: {error}\nThe file is kept as it is.", file=sys.stderr)
        return int(ExitCode.USAGE)
    print(f"{arguments.name}: ok", file=sys.stderr)
    return 0


def _make(name: str, base_name: str | None) -> Path:
    """The new file, from `base_name` or the profile of its own name. It never replaces one."""
    import re

    from agent.config.files import write_atomically
    from agent.core.errors import UsageError
    from agent.server.profile_files import list_profiles, load_profile
    from agent.server.profile_text import new_profile_text

    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name) or name.endswith(".toml"):
        raise UsageError(f"{name!r} is no name for a profile", "use letters, digits, dots and dashes")
    path = _folders()[0] / f"{name}.toml"
    if path.exists():
        raise UsageError(f"{path} is there already", f"change it with `agent profile edit {name}`")
    if base_name is None and name not in {found.name for found in list_profiles(_folders())}:
        raise UsageError(
            f"unknown profile {name!r}, so there is nothing of that name to start from",
            f"name another: `agent profile new {name} --from PROFILE`; `agent profile list` shows them",
        )
    base_name = base_name or name
    base = load_profile(base_name, _folders())
    extends = str(Path(base_name).expanduser().absolute()) if base_name.endswith(".toml") else base_name
    write_atomically(path, new_profile_text(name, base, extends))
    return path


def _folders() -> list[Path]:
    from agent.resources import places_of_profiles

    return places_of_profiles()
