"""`agent model`: fetches, checks and removes the model files that profiles need."""

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.config.model import Models
    from agent.server.model_file import ModelFile
    from agent.server.profile import Profile


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds `model` with `list`, `pull`, `verify` and `rm`."""
    parser = subparsers.add_parser("model", help="fetch and check model files", description=__doc__)
    parser.set_defaults(func=run_list, json=False)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    show = actions.add_parser("list", help="the model files of all profiles, and which are there")
    show.add_argument("--json", action="store_true", help="a JSON array on stdout")
    show.set_defaults(func=run_list)
    for name, summary, func in (
        ("pull", "fetch the model files of profiles; goes on where it stopped", run_pull),
        ("verify", "read the model files of profiles and compare their sha256", run_verify),
    ):
        action = actions.add_parser(name, help=summary)
        action.add_argument(
            "profiles", nargs="*", metavar="PROFILE", help="default: the profile of your settings"
        )
        action.set_defaults(func=func)
    remove = actions.add_parser("rm", help="delete the model files of a profile, half downloads too")
    remove.add_argument(
        "profiles", nargs="+", metavar="PROFILE", help="a profile, or the name of a model file"
    )
    remove.add_argument("--yes", "-y", action="store_true", help="do not ask, not even for a server's file")
    remove.set_defaults(func=run_remove)


def run_list(arguments: argparse.Namespace) -> int:
    """Prints each file once, with the profiles that need it."""
    from agent.cli.columns import in_columns
    from agent.cli.progress import show_bytes
    from agent.server.download import status_of_file

    models = _models()
    rows = []
    for file, users in _files_of_all_profiles().values():
        status = status_of_file(file, models.folder)
        rows.append(
            {
                "file": file.file,
                "state": status.state,
                "bytes": status.bytes,
                "expected_bytes": file.bytes,
                "profiles": users,
                "path": str(status.path),
            }
        )
    if arguments.json:
        import json

        print(json.dumps(rows, indent=2))
        return 0
    table = [("FILE", "STATE", "SIZE", "PROFILES")]
    for row in rows:
        bytes_known = row["expected_bytes"] or row["bytes"]
        size = show_bytes(bytes_known) if bytes_known else "not known"
        table.append((row["file"], row["state"], size, ", ".join(row["profiles"])))
    print("\n".join(in_columns(table)))
    print(f"in {models.folder}", file=sys.stderr)
    return 0


def run_pull(arguments: argparse.Namespace) -> int:
    """Fetches what is missing; what is there is checked."""
    from agent.app.servers.planning import with_profile
    from agent.cli.progress import DownloadBar, ProgressLine
    from agent.core.errors import ModelFileError
    from agent.server.download import obtain

    models = _models()
    for profile in _profiles(arguments.profiles):
        for file in profile.model_files:
            line = ProgressLine()
            try:
                path = obtain(
                    file, models.folder, order=models.sources, progress=DownloadBar(file.file, line)
                )
            except ModelFileError as error:
                line.end()
                raise ModelFileError(error.message, with_profile(error.hint, profile.name)) from error
            except BaseException:
                line.end()
                raise
            line.end(f"{file.file}: ready in {path.parent}")
        _say_if_nothing_is_needed(profile)
    return 0


def run_verify(arguments: argparse.Namespace) -> int:
    """Reads every file through. The first wrong one is an error."""
    from agent.cli.progress import DownloadBar, ProgressLine
    from agent.server.download import verify

    models = _models()
    for profile in _profiles(arguments.profiles):
        for file in profile.model_files:
            line = ProgressLine()
            try:
                path = file.found_in(models.folder) or file.path_in(models.folder)
                verify(
                    file,
                    path,
                    DownloadBar(file.file, line),
                    force=True,
                    remember=path.parent == models.folder,
                )
            except BaseException:
                line.end()
                raise
            how = "sha256 is right" if file.sha256 else "is there; the profile names no sha256 to compare"
            line.end(f"{file.file}: {how}")
        _say_if_nothing_is_needed(profile)
    return 0


def run_remove(arguments: argparse.Namespace) -> int:
    """Deletes files, after a question that says what is deleted, which profiles need it and what uses it.

    Raises UsageError where nobody can be asked, or a running server uses a file.
    """
    from agent.cli.progress import show_bytes
    from agent.core.errors import ExitCode, UsageError
    from agent.server.download import removable_files, remove_files

    models = _models()
    wanted = _files_to_remove(arguments.profiles)
    found = {name: removable_files(file, models.folder) for name, (file, _) in wanted.items()}
    busy: list[str] = []
    for name, paths in found.items():
        if not paths:
            print(f"{name}: nothing to delete in {models.folder}", file=sys.stderr)
            continue
        file, users = wanted[name]
        size = show_bytes(sum(path.stat().st_size for path in paths))
        servers = _servers_of(file.path_in(models.folder), users)
        busy += servers
        in_use = f", in use by {', '.join(servers)}" if servers else ""
        print(f"{name}: {size}, needed by {', '.join(users)}{in_use}", file=sys.stderr)
    if not any(found.values()):
        return 0
    if busy and not arguments.yes:
        raise UsageError(
            "a running server uses a file that would be deleted",
            "stop it with `agent server stop`, or delete the file all the same with --yes",
        )
    if not arguments.yes and not _agrees(models.folder):
        print("nothing was deleted", file=sys.stderr)
        return int(ExitCode.NOT_SOLVED)
    for name, (file, _) in wanted.items():
        if remove_files(file, models.folder):
            print(f"{name}: deleted", file=sys.stderr)
    return 0


def _files_to_remove(names: list[str]) -> "dict[str, tuple[ModelFile, list[str]]]":
    """By file name: the files of profiles, or with these names, and the profiles that need each."""
    known = _files_of_all_profiles()
    wanted: dict[str, tuple[ModelFile, list[str]]] = {}
    for name in names:
        if name in known:
            wanted[name] = known[name]
            continue
        for profile in _profiles([name]):
            for file in profile.model_files:
                wanted[file.file] = known.get(file.file, (file, [profile.name]))
    return wanted


def _servers_of(path: Path, users: list[str]) -> list[str]:
    """The running servers of ours that were started with this file, for a person to read."""
    import json

    from agent.resources import runtime_folder
    from agent.server.record import list_records

    found = []
    for record in list_records(runtime_folder()):
        spec = Path(record.spec_file)
        text = spec.read_text("utf-8") if spec.is_file() else ""
        # The command line of a server in a process of its own may name the file without its folder.
        if record.is_running and (json.dumps(str(path)) in text or record.profile in users):
            found.append(f"the server of {record.profile} (process {record.pid})")
    return found


def _agrees(folder: Path) -> bool:
    """Asks the person. Raises UsageError where there is no terminal."""
    from agent.core.errors import UsageError

    if not (sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            "nothing was deleted: nobody can be asked here", "add --yes to delete without a question"
        )
    print(f"Delete this in {folder}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _say_if_nothing_is_needed(profile: "Profile") -> None:
    if not profile.model_files:
        print(f"{profile.name}: needs no model file here (engine {profile.engine})", file=sys.stderr)


def _models() -> "Models":
    from agent.config.load import find_project_root, load_settings

    return load_settings(find_project_root(Path.cwd()), os.environ, {}).settings.models


def _profiles(names: list[str]) -> "list[Profile]":
    from agent.config.load import find_project_root, load_settings
    from agent.server.profile_files import load_profile

    if not names:
        names = [load_settings(find_project_root(Path.cwd()), os.environ, {}).settings.profile]
    return [load_profile(name, _folders()) for name in names]


def _files_of_all_profiles() -> "dict[str, tuple[ModelFile, list[str]]]":
    """By file name: the file and the names of the profiles that need it. A broken profile is left out."""
    from agent.core.errors import UsageError
    from agent.server.profile_files import list_profiles, load_profile

    files: dict[str, tuple[ModelFile, list[str]]] = {}
    for found in list_profiles(_folders()):
        try:
            profile = load_profile(found.name, _folders())
        except UsageError as error:
            print(f"agent: left out: {error.message}", file=sys.stderr)
            continue
        for file in profile.model_files:
            files.setdefault(file.file, (file, []))[1].append(profile.name)
    return files


def _folders() -> list[Path]:
    from agent.resources import places_of_profiles

    return places_of_profiles()
