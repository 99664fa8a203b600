"""Which formatters a project itself configures."""

from dataclasses import dataclass
from pathlib import Path

LARGEST_FILE_BYTES = 1024 * 1024
_RUFF_FILES = ("ruff.toml", ".ruff.toml")
_PRETTIER_FILES = (
    ".prettierrc",
    *(f".prettierrc.{end}" for end in ("json", "json5", "yaml", "yml", "toml", "js", "cjs", "mjs", "ts")),
    *(f"prettier.config.{end}" for end in ("js", "cjs", "mjs", "ts")),
)
_RUSTFMT_FILES = ("rustfmt.toml", ".rustfmt.toml")
_PROGRAM_FOLDERS = ("node_modules/.bin", ".venv/bin", "venv/bin")


@dataclass(frozen=True, slots=True)
class OwnFormatter:
    """A formatter by the name of its preset, and the file at the root of the project that asks for it."""

    name: str
    file: str


def own_formatters(root: Path) -> tuple[OwnFormatter, ...]:
    """What the files at the root of a project ask for. Reads files; what cannot be read asks for nothing."""
    found = [
        OwnFormatter("ruff", _first(root, _RUFF_FILES) or _pyproject(root)),
        OwnFormatter("prettier", _first(root, _PRETTIER_FILES) or _package(root)),
        OwnFormatter("gofmt", _first(root, ("go.mod",))),
        OwnFormatter("rustfmt", _first(root, _RUSTFMT_FILES)),
    ]
    return tuple(one for one in found if one.file)


def program_folders(root: Path) -> list[str]:
    """Where a project keeps programs of its own, as far as these folders are there."""
    return [str(root / name) for name in _PROGRAM_FOLDERS if (root / name).is_dir()]


def _first(root: Path, names: tuple[str, ...]) -> str:
    return next((name for name in names if (root / name).is_file()), "")


def _pyproject(root: Path) -> str:
    import tomllib

    try:
        tool = tomllib.loads(_text(root / "pyproject.toml")).get("tool")
    except (ValueError, RecursionError):
        return ""
    return "pyproject.toml" if isinstance(tool, dict) and "ruff" in tool else ""


def _package(root: Path) -> str:
    import json

    try:
        package = json.loads(_text(root / "package.json") or "{}")
    except (ValueError, RecursionError):
        return ""
    return "package.json" if isinstance(package, dict) and package.get("prettier") else ""


def _text(file: Path) -> str:
    try:
        if not file.is_file() or file.stat().st_size > LARGEST_FILE_BYTES:
            return ""
        return file.read_text("utf-8", errors="replace")
    except OSError:
        return ""
