"""`agent profile`: lists, shows and checks server profiles."""

import argparse
import sys
from pathlib import Path


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds `profile` with `list`, `show` and `validate`."""
    parser = subparsers.add_parser(
        "profile", help="list, show and check server profiles", description=__doc__
    )
    parser.set_defaults(func=run_list, json=False)
    actions = parser.add_subparsers(metavar="ACTION")
    listing = actions.add_parser("list", help="every profile that can be named")
    listing.add_argument("--json", action="store_true", help="a JSON array on stdout")
    listing.set_defaults(func=run_list)
    show = actions.add_parser("show", help="a profile with everything that it extends and all defaults")
    show.add_argument("profile", metavar="PROFILE", help="a name, or a path to a .toml file")
    show.add_argument("--json", action="store_true", help="JSON instead of TOML")
    show.set_defaults(func=run_show)
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
    """Prints the whole profile as it will be used."""
    from agent.server.profile_files import find_profile, load_profile

    profile = load_profile(arguments.profile, _folders())
    print(f"from {find_profile(arguments.profile, _folders())}", file=sys.stderr)
    table = profile.model_dump(mode="json", exclude_none=True)
    if arguments.json:
        import json

        print(json.dumps(table, indent=2))
    else:
        import tomlkit

        print(tomlkit.dumps(table), end="")
    return 0


def run_validate(arguments: argparse.Namespace) -> int:
    """Checks each profile and reports all that are wrong."""
    from agent.core.errors import ExitCode, UsageError
    from agent.server.profile_files import list_profiles, load_profile

    names = arguments.profiles or [found.name for found in list_profiles(_folders())]
    code = 0
    for name in names:
        try:
            load_profile(name, _folders())
        except UsageError as error:
            print(f"agent: {error}", file=sys.stderr)
            code = int(ExitCode.USAGE)
            continue
        print(f"{name}: ok", file=sys.stderr)
    return code


def _folders() -> list[Path]:
    from agent.resources import config_folder, profiles_folder

    return [config_folder() / "profiles", profiles_folder()]
