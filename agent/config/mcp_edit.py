"""Adding and removing MCP servers in the person's configuration file, with comments and order kept."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.config.files import write_atomically
from agent.config.layers import decode, file_layer, read_file
from agent.config.load import user_config_file
from agent.core.errors import UsageError

_KEY = "mcp.servers"


def set_server(name: str, table: Mapping[str, Any], environment: Mapping[str, str]) -> Path:
    """Writes `[mcp.servers.NAME]`, in place of one that is there. Returns the file.

    Raises:
        UsageError: the table is wrong, or the file cannot be read, changed safely or written.
    """
    return _change(name, dict(table), environment)


def remove_server(name: str, environment: Mapping[str, str]) -> Path:
    """Takes a server out of the person's file, and returns the file.

    Raises:
        UsageError: there is none of that name, or the file cannot be changed safely or written.
    """
    return _change(name, None, environment)


def _change(name: str, table: dict[str, Any] | None, environment: Mapping[str, str]) -> Path:
    path = user_config_file(environment)
    content = read_file(path) or b""
    before = dict(file_layer("user", path, content).values)
    servers = dict(before.get(_KEY, {}))
    if table is None and name not in servers:
        raise UsageError(
            f"{path} has no MCP server {name}", "`agent mcp list` says where each one is written"
        )
    changed = _edited(path, decode(path, content), name, table)
    wanted = (
        {**servers, name: table} if table is not None else {k: v for k, v in servers.items() if k != name}
    )
    after = dict(file_layer("user", path, changed.encode("utf-8")).values)
    # The person's file is worth more than this edit: nothing but this one server may be different.
    if {**after, _KEY: after.get(_KEY, {})} != {**before, _KEY: wanted}:
        raise UsageError(f"{path} cannot be changed safely; edit [mcp.servers.{name}] there by hand")
    write_atomically(path, changed)
    return path


def _edited(path: Path, text: str, name: str, table: dict[str, Any] | None) -> str:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document: Any = tomlkit.parse(text)
        if "mcp" not in document:
            document["mcp"] = tomlkit.table(is_super_table=True)
        if "servers" not in document["mcp"]:
            document["mcp"]["servers"] = tomlkit.table(is_super_table=True)
        servers = document["mcp"]["servers"]
        if table is None:
            del servers[name]
        else:
            servers[name] = table
        return tomlkit.dumps(document)
    except (TOMLKitError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{path} cannot be changed safely; edit [mcp.servers.{name}] there by hand"
        ) from error
