"""How a llama-server binary is started: its exact command, its variables, its folder.

What the person's surroundings could change behind the profile's back is kept away from it: variables,
configuration files, and the current folder, from which llama.cpp also loads its back ends.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from agent.core.errors import UsageError
from agent.server.argv import Places, command_for
from agent.server.caps import Capabilities, shielded
from agent.server.command import Argument, Command
from agent.server.profile import Profile, is_every_interface
from agent.server.record import first_key

_HUB_KEYS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_TOKEN")
_HUB_FLAGS = ("-hf", "--hf-", "--spec-draft-hf", "--docker-repo", "-dr")
_OURS = {
    "--port": "set port in the profile",
    "--host": "set host in the profile",
    "--api-key-file": "set api_key_file in the profile",
    "--api-prefix": "remove it; or run the server yourself and name its address in url",
    "--ssl-key-file": "remove it; or run the server yourself and name its address in url",
    "--ssl-cert-file": "remove it; or run the server yourself and name its address in url",
}
_PATHS = ("api_key_file", "chat_template_file", "slot_save_path", "log_file")
_IN_FOLDER = 'umask 077; cd "$1" || exit 126; shift; exec "$@"'


def contact_host(host: str) -> str:
    """Where a server that listens on `host` is reached from this machine."""
    return "127.0.0.1" if is_every_interface(host) else host


def prepared(profile: Profile, key_file: Path) -> Profile:
    """The profile as it is started here: with a key in any case, and with paths that work from anywhere.

    Raises:
        UsageError: it names a file that is not there, or asks for what makes the server unreachable.
    """
    _require_reachable(profile)
    changes: dict[str, str] = {}
    for name in _PATHS:
        text = getattr(profile, name)
        if text:
            changes[name] = str(_existing(profile, name, Path(text).expanduser().absolute()))
    if profile.api_key_file and not first_key(Path(changes["api_key_file"])):
        raise UsageError(
            f"profile {profile.name!r}: there is no key in {changes['api_key_file']}",
            "write one into its first line, or remove api_key_file to have one made for each start",
        )
    changes.setdefault("api_key_file", str(key_file))
    return profile.model_copy(update=changes)


def server_command(profile: Profile, capabilities: Capabilities, places: Places, key_file: Path) -> Command:
    """The command that is run. What `agent server command` prints, and what makes it ours.

    Raises:
        UsageError: the server cannot do what the profile says; see also `prepared`.
    """
    command = command_for(prepared(profile, key_file), capabilities, places)
    if command.refusals:
        first, *others = command.refusals
        more = "".join(f"; {notice.message}" for notice in others)
        raise UsageError(f"profile {profile.name!r}: {first.message}{more}", first.hint)
    words = {argument.flag for argument in command.arguments}
    arguments = list(command.arguments)
    if capabilities.knows("--slots") and not words & {"--slots", "--no-slots"}:
        # Off by default in some forks; without it nobody can tell whether the server is at work.
        arguments.append(Argument("--slots", None, "which slots are at work"))
    return Command(command.program, tuple(arguments), command.warnings)


def child_environment(environment: Mapping[str, str], profile: Profile, empty_folder: Path) -> dict[str, str]:
    """The person's variables, without those that change a llama-server and keys that it has no use for.

    Args:
        empty_folder: where it looks for a configuration file of its own, and finds none.
    """
    kept = shielded(environment)
    if not any(word.startswith(_HUB_FLAGS) for word in profile.extra_args):
        kept = {name: value for name, value in kept.items() if name not in _HUB_KEYS}
    return {**kept, "XDG_CONFIG_HOME": str(empty_folder)}


def in_folder(folder: Path, argv: Sequence[str]) -> list[str]:
    """A command that runs `argv` in `folder`, in the same process; what it writes is for the owner only."""
    return ["/bin/sh", "-c", _IN_FOLDER, "sh", str(folder), *argv]


def _require_reachable(profile: Profile) -> None:
    if profile.host.endswith(".sock"):
        raise UsageError(
            f"profile {profile.name!r}: host = {profile.host!r} is a socket file, which is not supported",
            'set host = "127.0.0.1"',
        )
    for word in profile.extra_args:
        if word.replace("_", "-") in _OURS:
            name = word.replace("_", "-")
            raise UsageError(
                f"profile {profile.name!r}: extra_args must not hold {name}: the server would not be found",
                _OURS[name],
            )


def _existing(profile: Profile, name: str, path: Path) -> Path:
    there = path.is_dir() if name == "slot_save_path" else path.is_file()
    if name == "log_file":
        there = path.parent.is_dir()
    if not there:
        kind = "folder" if name in ("slot_save_path", "log_file") else "file"
        missing = path.parent if name == "log_file" else path
        raise UsageError(
            f"profile {profile.name!r}: {name} names a {kind} that is not there: {missing}",
            f"create it, or change {name}",
        )
    if name in ("api_key_file", "chat_template_file") and not os.access(path, os.R_OK):
        raise UsageError(f"profile {profile.name!r}: {name} cannot be read: {path}", "check its permissions")
    return path
