"""Adds the embedded engine, a wheel, to the environment that this program runs in."""

import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from agent.core.errors import ServerError, UsageError
from agent.server.program import run_logged

_DISTRIBUTION = "dflash-agent"
_EXTRA = "embedded"
_MODULE = "xllamacpp"


def engine_version() -> str | None:
    """The version of the embedded engine, None when it is not installed."""
    try:
        return metadata.version(_MODULE)
    except metadata.PackageNotFoundError:
        return None


def engine_requirement() -> str:
    """What has to be installed for it, as this program's own metadata says."""
    try:
        needs = metadata.requires(_DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        needs = []
    found = [
        need.partition(";")[0].strip() for need in needs if f'extra == "{_EXTRA}"' in need.replace("'", '"')
    ]
    return found[0] if found else _MODULE


def _is_managed() -> bool:
    import sysconfig

    in_venv = sys.prefix != sys.base_prefix
    return not in_venv and (Path(sysconfig.get_path("stdlib")) / "EXTERNALLY-MANAGED").is_file()


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The Python environment that this program runs in; tests hand in their own.

    `managed` says that the system's package manager owns it (PEP 668).
    """

    python: Path = field(default_factory=lambda: Path(sys.executable))
    prefix: Path = field(default_factory=lambda: Path(sys.prefix))
    managed: bool = field(default_factory=_is_managed)
    has_pip: bool = field(default_factory=lambda: find_spec("pip") is not None)
    uv: str | None = field(default_factory=lambda: shutil.which("uv"))
    version: Callable[[], str | None] = engine_version
    requirement: Callable[[], str] = engine_requirement


def command_for(place: Environment) -> list[str]:
    """The command that installs it here.

    Raises:
        UsageError: this environment is looked after by another program; the hint is that program's command.
    """
    requirement = place.requirement()
    if (place.prefix / "uv-receipt.toml").is_file():
        raise UsageError(
            "this program was installed by uv as a tool, and only uv should change it",
            f"uv tool install '{_DISTRIBUTION}[{_EXTRA}]'",
        )
    if (place.prefix / "pipx_metadata.json").is_file():
        raise UsageError(
            "this program was installed by pipx, and only pipx should change it",
            f"pipx inject {_DISTRIBUTION} '{requirement}'",
        )
    if place.managed:
        raise UsageError(
            f"{place.python} belongs to the system, whose package manager looks after it",
            f"pipx install '{_DISTRIBUTION}[{_EXTRA}]', which gives this program an environment of its own",
        )
    if place.has_pip:
        return [str(place.python), "-P", "-m", "pip", "install", "--no-input", requirement]
    if place.uv:
        return [place.uv, "pip", "install", "--python", str(place.python), requirement]
    raise UsageError(f"{place.python} has neither pip nor uv", f"{place.python} -m ensurepip")


def install_engine(
    place: Environment,
    log: IO[bytes],
    environment: Mapping[str, str],
    on_line: Callable[[str], None],
    cancelled: Callable[[], bool] = lambda: False,
) -> str:
    """Installs it unless it is there. Returns its version.

    Raises:
        UsageError: see `command_for`.
        ServerError: it could not be installed.
        CancelledError: `cancelled` said so.
    """
    if version := place.version():
        return version
    command = command_for(place)
    errors: list[str] = []

    def look_at(line: str) -> None:
        if line.lower().startswith(("error", "× ")):
            errors.append(line.strip())
        on_line(line)

    status = run_logged(
        command,
        log=log,
        environment=environment,
        on_line=look_at,
        cancelled=cancelled,
        folder=place.prefix,  # see `find_pip`
    )
    if status != 0:
        reason = errors[0] if errors else f"it ended with status {status}"
        raise ServerError(f"the embedded engine could not be installed: {reason[:300]}", " ".join(command))
    version = place.version()
    if version is None:
        raise ServerError("the embedded engine was installed, but cannot be found", " ".join(command))
    return version
