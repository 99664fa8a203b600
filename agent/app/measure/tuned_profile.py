"""A profile that was found by measuring: what it changes, and the evidence as comments."""

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent.app.measure.tuning_space import KINDS
from agent.bench.trial import Changes
from agent.config.files import write_atomically
from agent.core.errors import PLEASE_REPORT, AgentError, UsageError
from agent.resources import config_folder, places_of_profiles
from agent.server.profile import Profile
from agent.server.profile_files import SUFFIX, find_profile, load_profile

MARK = "# Written by `agent tune`"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def target_file(name: str, base: str) -> Path:
    """Where the profile `name` goes.

    Args:
        base: name or file of the profile that it extends.

    Raises:
        UsageError: no name, or a file that a person wrote.
    """
    if not _NAME.fullmatch(name) or name.endswith(SUFFIX):
        raise UsageError(f"{name!r} is no name for a profile", "use letters, digits, dots and dashes")
    path = config_folder() / "profiles" / f"{name}{SUFFIX}"
    if not path.exists():
        return path
    if path.resolve() == find_profile(base, places_of_profiles()).resolve():
        raise UsageError(f"{path} is the profile that would be tuned", "choose another name with --save-as")
    try:
        is_ours = path.read_text("utf-8").startswith(MARK)
    except (OSError, UnicodeDecodeError):
        is_ours = False
    if not is_ours:
        raise UsageError(
            f"{path} is there already and was not written by `agent tune`",
            "choose another name with --save-as",
        )
    return path


def tuned_text(profile: Profile, extends: str, changes: Changes, evidence: Sequence[str]) -> str:
    """TOML for a profile that extends another one with the changed keys alone.

    Args:
        profile: the base with the changes.
        extends: how the base is named: its name, or its file.
        evidence: lines that say what was measured.
    """
    import tomlkit

    document = tomlkit.document()
    document["extends"] = extends
    document["description"] = f"{Path(extends).stem}, tuned for this machine by measured runs"
    speculation: dict[str, Any] = {}
    for key, value in changes:
        if key == KINDS:
            continue
        if key.startswith("speculation."):
            speculation[key.removeprefix("speculation.")] = value
        else:
            document[key] = value
    if changes and "batch_seconds" in profile.model_fields_set and not profile.batch_seconds:
        document["batch_seconds"] = 0
    kinds = dict(changes).get(KINDS)
    if kinds is not None:
        # Another kind replaces the whole table, so all of it is said.
        kept = profile.speculation.model_dump(mode="json", exclude_unset=True, exclude={"kind", "also"})
        speculation = {"kind": list(kinds) if kinds else "none", **(kept if kinds else {})}
    if speculation:
        document["speculation"] = speculation
    comments = [f"# {_printable(line)}".rstrip() for line in evidence]
    return "\n".join([*comments, "", tomlkit.dumps(document)])


def write_profile(path: Path, text: str, expected: Profile) -> None:
    """Writes it, once it is sure that it is read as what was measured.

    Raises:
        AgentError: it would be read as something else.
        UsageError: it cannot be written.
    """
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / path.name).write_text(text, "utf-8")
        found = load_profile(path.stem, [Path(folder), *places_of_profiles()])
    if _essence(found) != _essence(expected):
        raise AgentError(
            "the tuned profile would not be read as it was measured",
            PLEASE_REPORT,
        )
    write_atomically(path, text)


def _printable(line: str) -> str:
    """A comment ends with its line, and must not hold control characters."""
    return "".join(character if character.isprintable() else " " for character in line)


def _essence(profile: Profile) -> dict[str, Any]:
    return profile.model_dump(exclude={"name", "description"})
