"""What the settings say about files after an edit, typed."""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from agent.core.outside_text import one_line

FILE_MARK = "{file}"
DEFAULT_SECONDS = 10.0
_LONGEST_LABEL = 40
_PRETTIER_ENDINGS = "js jsx mjs cjs ts tsx mts cts css scss less html vue json md yaml yml graphql"


@dataclass(frozen=True, slots=True)
class EditCommand:
    """A command line. `{file}` in it is the file, by its path from the workspace; `seconds` are its limit."""

    line: str
    seconds: float = DEFAULT_SECONDS
    title: str = ""

    @property
    def label(self) -> str:
        """What it is called in a message."""
        return self.title or one_line(self.line.replace(FILE_MARK, ""), _LONGEST_LABEL)

    @property
    def is_about_one_file(self) -> bool:
        return FILE_MARK in self.line

    def filled(self, path: str) -> str:
        """The command line for one file. A name that begins like an option is no option."""
        safe = f"./{path}" if path.startswith("-") else path
        return self.line.replace(FILE_MARK, shlex.quote(safe))


@dataclass(frozen=True, slots=True, kw_only=True)
class EditStep:
    """What is done to files with certain names; `name` is that of a preset, else empty.

    `probe` ends with 0 for a file that the formatter would leave as it is. `local_programs` says that it is
    looked for in the project first, `runs_project_code` that the project can make it run anything.
    """

    globs: tuple[str, ...]
    format: EditCommand | None = None
    check: EditCommand | None = None
    probe: EditCommand | None = None
    name: str = ""
    local_programs: bool = False
    runs_project_code: bool = False

    def is_about(self, path: str) -> bool:
        """Whether a file is meant, by its path from the workspace with `/`."""
        return any(_matches(path, glob) for glob in self.globs)


PRESETS: Mapping[str, EditStep] = {
    "ruff": EditStep(
        name="ruff",
        globs=("*.py", "*.pyi"),
        format=EditCommand("ruff format --no-cache --force-exclude {file}", title="ruff format"),
        check=EditCommand(
            "ruff check --quiet --no-cache --force-exclude --no-fix --output-format concise {file}",
            title="ruff check",
        ),
        probe=EditCommand("ruff format --check --quiet --no-cache --force-exclude {file}"),
        local_programs=True,
    ),
    "prettier": EditStep(
        name="prettier",
        globs=tuple(f"*.{end}" for end in _PRETTIER_ENDINGS.split()),
        format=EditCommand("prettier --log-level warn --write {file}", title="prettier"),
        probe=EditCommand("prettier --log-level silent --check {file}"),
        local_programs=True,
        runs_project_code=True,  # plugins, and configurations that are scripts
    ),
    "gofmt": EditStep(
        name="gofmt",
        globs=("*.go",),
        format=EditCommand("gofmt -w {file}", title="gofmt"),
        probe=EditCommand('test -z "$(gofmt -l {file})"'),
    ),
    # In place it would format every module below the file too, which nobody has edited.
    "rustfmt": EditStep(
        name="rustfmt",
        globs=("*.rs",),
        format=EditCommand(
            "new=$(rustfmt --edition 2021 --emit stdout < {file}) && printf '%s\\n' \"$new\" > {file}",
            title="rustfmt",
        ),
        probe=EditCommand("rustfmt --edition 2021 --check < {file}"),
        runs_project_code=True,  # rust-toolchain.toml can name a program
    ),
}


def steps_from(entries: Iterable[Any]) -> tuple[EditStep, ...]:
    """The steps of `[[after_edit]]`: names of presets, or tables. The settings are checked already."""
    return tuple(_step({"use": entry} if isinstance(entry, str) else entry) for entry in entries)


def formatter_only(name: str) -> EditStep:
    """A preset as a project's own files ask for it: it formats what was formatted before the edit."""
    return replace(PRESETS[name], check=None)


def _step(table: Mapping[str, Any]) -> EditStep:
    preset = PRESETS.get(str(table.get("use", "")))
    seconds = float(table.get("seconds", DEFAULT_SECONDS))
    globs = table.get("glob", preset.globs if preset else ())

    def command(key: str, given: EditCommand | None) -> EditCommand | None:
        if given is not None and key not in table:
            return replace(given, seconds=seconds)
        line = str(table.get(key, ""))
        return EditCommand(line, seconds) if line.strip() else None

    return EditStep(
        name=preset.name if preset else "",
        globs=(globs,) if isinstance(globs, str) else tuple(globs),
        format=command("format", preset.format if preset else None),
        check=command("check", preset.check if preset else None),
        local_programs=preset.local_programs if preset else False,
        runs_project_code=preset.runs_project_code if preset else False,
    )


def _matches(path: str, glob: str) -> bool:
    """A pattern without `/` is about the name alone; `**/` may also stand for no folder at all."""
    if "/" not in glob:
        return fnmatchcase(Path(path).name, glob)
    glob = glob.removeprefix("./").removeprefix("/")
    return fnmatchcase(path, glob) or fnmatchcase(path, glob.replace("**/", ""))
