"""The settings as they are shown: from the descriptions of the model and the origins of the loader."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.config.layers import Origin
from agent.config.load import (
    ADDED_UP,
    LoadedSettings,
    ProjectConfig,
    guarded_keys,
    load_settings,
    read_user_layer,
)
from agent.config.model import McpServer, all_settings, value_of
from agent.config.text import printable, show_value


def as_rows(loaded: LoadedSettings) -> list[tuple[str, str, str]]:
    """Key, value and source of every setting, ready to print."""
    return [
        (info.key, show_value(value_of(loaded.settings, info.key)), str(loaded.origins[info.key]))
        for info in all_settings()
    ]


def explanations() -> list[str]:
    """One line for each setting: what it means, in which unit."""
    width = max(len(info.key) for info in all_settings())
    return [f"{info.key:<{width}}  {info.description}" for info in all_settings()]


def as_json(loaded: LoadedSettings) -> dict[str, Any]:
    """`settings`: value, sources (lowest layer first) and description by key; then `notices`."""
    return {
        "settings": {
            info.key: {
                "value": _plain(value_of(loaded.settings, info.key)),
                "sources": [_source(origin) for origin in _all_of(loaded.origins[info.key])],
                "description": info.description,
            }
            for info in all_settings()
        },
        "notices": list(loaded.notices),
    }


def as_changes(project: ProjectConfig, environment: Mapping[str, str]) -> list[str]:
    """What a project's file says, line by line, whole values, with what holds without it.

    Keys that count only after the person's agreement are marked.
    """
    own = load_settings(None, environment, {})
    user = read_user_layer(environment)
    guarded = set(guarded_keys(project.layer, user))
    lines = [f"{printable(str(project.path))} says:"]
    for key, value in project.layer.values.items():
        mark = "!" if key in guarded else " "
        verb = "adds" if key in ADDED_UP else "="
        now = show_value(value_of(own.settings, key))
        lines.append(f"  {mark} {key} {verb} {show_value(value)}  (yours: {now})")
    if guarded:
        lines.append("Lines with ! count only when you trust this folder.")
    return lines


def _all_of(origin: Origin) -> tuple[Origin, ...]:
    return (*origin.earlier, origin)


def _source(origin: Origin) -> dict[str, Any]:
    return {"layer": origin.layer, "place": origin.place, "line": origin.line}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return str(value) if isinstance(value, Path | McpServer) else value
