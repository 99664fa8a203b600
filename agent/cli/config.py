"""`agent config`: shows the settings with where each came from, and changes the person's own."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

WIDEST_VALUE = 48


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds `config` with `show`, `path`, `set` and `unset`."""
    parser = subparsers.add_parser("config", help="show and change settings", description=__doc__)
    parser.set_defaults(func=run_show, key="", json=False, explain=False)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")

    show = actions.add_parser("show", help="every setting, its value and where it came from")
    show.add_argument(
        "key",
        metavar="KEY",
        nargs="?",
        default="",
        help="one setting, or a section such as limits (default: all)",
    )
    show.add_argument("--json", action="store_true", help="one JSON object on stdout")
    show.add_argument("--explain", action="store_true", help="say what each setting means, with its unit")
    show.set_defaults(func=run_show)

    path = actions.add_parser("path", help="print the path of your configuration file")
    path.add_argument("--project", action="store_true", help="the project's file instead")
    path.set_defaults(func=run_path)

    change = actions.add_parser("set", help="write one setting into your configuration file")
    change.add_argument("key", metavar="KEY", help="such as limits.max_steps")
    change.add_argument("value", metavar="VALUE", help="lists: items with commas between, or a TOML array")
    change.set_defaults(func=run_set)

    back = actions.add_parser("unset", help="take one setting out of your file: its default holds again")
    back.add_argument("key", metavar="KEY", help="such as limits.max_steps")
    back.set_defaults(func=run_unset)


def run_show(arguments: argparse.Namespace) -> int:
    """Prints settings as they are in the present folder; notices go to stderr.

    Raises:
        UsageError: there is neither a setting nor a section of that name.
    """
    from agent.config.layers import unknown_variables
    from agent.config.load import find_project_root, load_settings
    from agent.config.show import as_json, as_rows, explanations

    wanted = _keys_under(arguments.key)
    if arguments.explain and not arguments.json:
        print(
            "\n".join(line for line in explanations() if line.split()[0] in wanted)
        )  # also for who has to mend settings that cannot be read
        return 0
    flags = {"profile": getattr(arguments, "profile", None)}
    loaded = load_settings(find_project_root(Path.cwd()), os.environ, flags)
    if arguments.json:
        import json

        shown = as_json(loaded)
        shown["settings"] = {key: told for key, told in shown["settings"].items() if key in wanted}
        print(json.dumps(shown, indent=2))
    else:
        rows = [row for row in as_rows(loaded) if row[0] in wanted]
        print("\n".join(align([("KEY", "VALUE", "SOURCE"), *rows])))
    for notice in loaded.notices:
        print(notice, file=sys.stderr)
    for name, meant in unknown_variables(os.environ).items():
        guess = f"; did you mean {meant}?" if meant else ""
        print(f"warning: {name} is no setting of this program and counts for nothing{guess}", file=sys.stderr)
    return 0


def _keys_under(name: str) -> list[str]:
    """The setting of that name, or those of the section; all without a name. Raises UsageError."""
    from agent.config.model import all_settings
    from agent.core.errors import UsageError
    from agent.core.likeness import did_you_mean

    keys = [info.key for info in all_settings()]
    found = [key for key in keys if not name or key == name or key.startswith(f"{name}.")]
    if not found:
        names = [*keys, *dict.fromkeys(key.partition(".")[0] for key in keys)]
        raise UsageError(
            f"there is no setting {name!r}",
            did_you_mean(name, names, "`agent config show` lists all settings"),
        )
    return found


def run_path(arguments: argparse.Namespace) -> int:
    """Prints the path of a configuration file, whether or not it exists."""
    from agent.config.load import find_project_root, project_config_file, user_config_file

    project = arguments.project
    print(project_config_file(find_project_root(Path.cwd())) if project else user_config_file(os.environ))
    return 0


def run_set(arguments: argparse.Namespace) -> int:
    """Writes one value and confirms it."""
    from agent.config.edit import set_user_value
    from agent.config.text import show_value

    path, value = set_user_value(arguments.key, arguments.value, os.environ)
    print(f"{arguments.key} = {show_value(value)} in {path}", file=sys.stderr)
    if arguments.key == "profile":
        _warn_of_no_profile(str(value))
    _say_what_is_still_wrong()
    return 0


def run_unset(arguments: argparse.Namespace) -> int:
    """Takes one value out of the person's file and confirms it."""
    from agent.config.edit import unset_user_value

    path, was_set = unset_user_value(arguments.key, os.environ)
    print(f"{arguments.key} is {'no longer' if was_set else 'not'} set in {path}", file=sys.stderr)
    _say_what_is_still_wrong()
    return 0


def _warn_of_no_profile(name: str) -> None:
    """It may be made later, so it is no mistake yet; a slip would come up only at the next start."""
    from agent.core.errors import UsageError
    from agent.resources import places_of_profiles
    from agent.server.profile_files import find_profile

    try:
        find_profile(name, places_of_profiles())
    except UsageError as error:
        print(f"warning: {error}", file=sys.stderr)


def _say_what_is_still_wrong() -> None:
    from agent.config.edit import user_file_mistakes

    for mistake in user_file_mistakes(os.environ):
        print(f"still wrong: {mistake.text}", file=sys.stderr)


def align(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    """Lines with columns as wide as needed; a very long value pushes its own line only."""
    key_width = max(len(key) for key, _, _ in rows)
    value_width = min(WIDEST_VALUE, max(len(value) for _, value, _ in rows))
    return [f"{key:<{key_width}}  {value:<{value_width}}  {source}" for key, value, source in rows]
