"""Puts the layers together: defaults < person < project < environment < command line.

A project's file comes with a clone, so nobody has read it yet: what could loosen permissions, run a
command, or send the conversation elsewhere is left out, and said so, until the folder is trusted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from agent.config.layers import (
    EMPTY_LAYER,
    Layer,
    Origin,
    environment_layer,
    file_layer,
    flags_layer,
    nest,
    read_file,
    variable_name,
)
from agent.config.model import MODES_FROM_STRICT_TO_LOOSE, Settings, all_settings, default_settings, value_of
from agent.config.text import printable, shorten, show_value
from agent.resources import config_folder, data_folder, expand_home

FILE_NAME = "config.toml"
PROJECT_FOLDER = ".agent"

HOOK_KEYS = frozenset({"hooks.session_start", "hooks.before_tool", "hooks.after_tool", "hooks.before_finish"})
COMMAND_LISTS = HOOK_KEYS | {"after_edit"}
# A project may add a rule that denies, and must not make the person's own ones disappear.
ADDED_UP = frozenset({"permissions.allow", "permissions.ask", "permissions.deny"}) | COMMAND_LISTS
MERGED_BY_NAME = frozenset({"mcp.servers"})
ALWAYS_GUARDED = frozenset(
    {
        "check.command",
        "server.url",
        "server.api_key_env",
        "server.binary",
        "models.folder",
        "mcp.servers",
        "ui.keys",  # a common key could go to the next mode
    }
)
STRICTER_SANDBOX = {"sandbox.mode": "required", "sandbox.auto_allow": False}
NETWORK_FROM_STRICT_TO_LOOSE = ("off", "listed", "auto", "allow")


@dataclass(frozen=True)
class LoadedSettings:
    """`origins` has every key of `agent.config.model.all_settings`; `notices` are lines for the person."""

    settings: Settings
    origins: Mapping[str, Origin]
    notices: tuple[str, ...] = ()


class ProjectConfig(NamedTuple):
    """A project's own file: its bytes as they were read once, and what they say."""

    root: Path
    path: Path
    content: bytes
    layer: Layer


def user_config_file(environment: Mapping[str, str] | None = None) -> Path:
    """The person's own configuration file, which need not exist."""
    return config_folder(environment) / FILE_NAME


def project_config_file(project_root: Path) -> Path:
    """The project's configuration file, which need not exist."""
    return project_root / PROJECT_FOLDER / FILE_NAME


def find_project_root(start: Path) -> Path:
    """The nearest folder from `start` upwards that has a `.git`, else `start` itself, resolved."""
    start = start.resolve()
    return next((folder for folder in (start, *start.parents) if _is_a_repository(folder)), start)


def read_user_layer(environment: Mapping[str, str]) -> Layer:
    """What the person's own file says; empty where there is none.

    Raises:
        UsageError: it cannot be read or has mistakes.
    """
    path = user_config_file(environment)
    content = read_file(path)
    return EMPTY_LAYER if content is None else file_layer("user", path, content)


def read_project_config(project_root: Path) -> ProjectConfig | None:
    """Reads and checks the project's file; None where there is none.

    Raises:
        UsageError: it cannot be read or has mistakes.
    """
    root = project_root.absolute()
    path = project_config_file(root)
    content = read_file(path)
    return (
        None if content is None else ProjectConfig(root, path, content, file_layer("project", path, content))
    )


def load_settings(
    project_root: Path | None, environment: Mapping[str, str], flags: Mapping[str, object]
) -> LoadedSettings:
    """Merges all layers.

    Args:
        project_root: the folder whose `.agent/config.toml` counts; None for no project.
        environment: `AGENT_*` variables are read from it, those that move folders included.
        flags: dotted key -> value; None means that the flag was not given, text is converted as needed.

    Raises:
        UsageError: a mistake in any layer, in one line that names the place and the key.
    """
    user = read_user_layer(environment)
    project = read_project_config(project_root) if project_root is not None else None
    notices: tuple[str, ...] = ()
    layers = [_with_folder_from(user, config_folder(environment))]
    if project is not None:
        layer, notices = _guard(project, user, environment)
        layers.append(_with_folder_from(layer, project.root))
    layers += [
        _with_folder_from(layer, Path()) for layer in (environment_layer(environment), flags_layer(flags))
    ]
    values, origins = _merge(layers)
    models_folder = data_folder(environment) / "models"
    if not values:
        return LoadedSettings(default_settings(models_folder), origins, notices)
    values.setdefault("models.folder", str(models_folder))
    return LoadedSettings(Settings.model_validate(nest(values)), origins, notices)


def models_folder_without_files(environment: Mapping[str, str]) -> Path:
    """The folder of model files as far as the environment alone decides; for when a file has mistakes."""
    written = environment.get(variable_name("models.folder"))
    return expand_home(written).absolute() if written else data_folder(environment) / "models"


def guarded_keys(project: Layer, user: Layer) -> list[str]:
    """The keys of a project's file that count only when the folder is trusted, and would change something.

    Args:
        project: what the project's file says.
        user: what the person's own file says; what repeats it, or is stricter, needs no trust.
    """
    if not project.values:
        return []
    defaults = default_settings(Path())
    found = []
    for key, value in project.values.items():
        own = user.values.get(key, value_of(defaults, key))
        if _needs_trust(key, value, own):
            found.append(key)
    return found


def _needs_trust(key: str, value: Any, own: Any) -> bool:
    if key in COMMAND_LISTS:
        return any(entry not in own for entry in value)
    if key in ("project_formatters", "hooks.seconds"):
        # A hook that does not end in time blocks nothing.
        return value < own if key == "hooks.seconds" else value and not own
    if key == "permissions.allow":
        return not set(value) <= set(own)
    if key == "permissions.mode":
        return MODES_FROM_STRICT_TO_LOOSE.index(value) > MODES_FROM_STRICT_TO_LOOSE.index(own)
    if key.startswith("sandbox."):
        return _loosens_sandbox(key, value, own)
    if key == "models.sources":
        return list(value) != list(own)
    if key == "profile":
        # A profile decides which program is started; a mere name can only mean one that the person has.
        return value != own and _is_a_path(value)
    return key in ALWAYS_GUARDED and value != own


def _loosens_sandbox(key: str, value: Any, own: Any) -> bool:
    if key in ("sandbox.writable", "sandbox.hosts"):
        return not set(value) <= set(own)
    if key == "sandbox.network":
        order = NETWORK_FROM_STRICT_TO_LOOSE
        return order.index(value) > order.index(own)
    if key == "sandbox.hidden":
        return not set(own) <= set(value)
    return value not in (own, STRICTER_SANDBOX[key])


def _guard(
    project: ProjectConfig, user: Layer, environment: Mapping[str, str]
) -> tuple[Layer, tuple[str, ...]]:
    guarded = guarded_keys(project.layer, user)
    if not guarded:
        return project.layer, ()
    from agent.config.trust import TrustStore

    if TrustStore.of(environment).trusts(project.root, project.content):
        return project.layer, ()
    kept = {key: value for key, value in project.layer.values.items() if key not in guarded}
    origins = {key: project.layer.origins[key] for key in kept}
    notices = tuple(_notice(project, key) for key in guarded)
    return Layer(kept, origins), notices


def _notice(project: ProjectConfig, key: str) -> str:
    import shlex

    value = _short(key, project.layer.values[key])
    remedy = printable(shlex.join(["agent", "trust", str(project.root)]))
    return (
        f"{project.layer.origins[key]}: {key} = {value} is ignored, this folder is not trusted; "
        f"to look at it and use it: {remedy}"
    )


def _short(key: str, value: Any) -> str:
    """A value in a notice; of MCP servers the names, because their tables may hold keys."""
    if key == "mcp.servers":
        return ", ".join(printable(name) for name in value)
    return shorten(show_value(value))


def _is_a_repository(folder: Path) -> bool:
    try:
        return (folder / ".git").exists()
    except OSError:  # a folder further up that may not be looked into
        return False


def _with_folder_from(layer: Layer, base: Path) -> Layer:
    """A relative `models.folder` or `server.binary` means one beside the place where it was written."""
    moved = {
        key: str((base / expand_home(text)).absolute())
        for key in ("models.folder", "server.binary")
        if (text := layer.values.get(key)) and (key == "models.folder" or "/" in text)
    }
    return Layer({**layer.values, **moved}, layer.origins) if moved else layer


def _merge(layers: list[Layer]) -> tuple[dict[str, Any], dict[str, Origin]]:
    values: dict[str, Any] = {}
    origins = {info.key: Origin("default") for info in all_settings()}
    for layer in layers:
        for key, value in layer.values.items():
            if key in MERGED_BY_NAME:
                values[key] = {**values.get(key, {}), **value}
                origins[key] = layer.origins[key].after(origins[key])
            elif key not in ADDED_UP:
                values[key], origins[key] = value, layer.origins[key]
            elif value:
                before = values.get(key, [])
                values[key] = [*before, *(item for item in value if item not in before)]
                origins[key] = layer.origins[key].after(origins[key])
    return values, origins


def _is_a_path(profile: str) -> bool:
    return profile.endswith(".toml") or any(mark in profile for mark in "/\\~") or profile in (".", "..")
