"""What a llama-server binary supports, read from its own `--help`, and which family it belongs to.

Build numbers overlap between the forks and flags come and go within a year, so nothing is decided by
version: a flag may be used when the help names it. Without a binary the lists in `dialects/` stand in,
taken from the forks' own option tables (see `about` in each).
"""

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from agent.core.errors import UsageError
from agent.core.whole_file import write_whole
from agent.server.help_text import options_in
from agent.server.profile import DialectName

DIALECTS: dict[DialectName, str] = {
    "bee-0.3": "BeeLlama before 0.4",
    "bee-0.4": "BeeLlama 0.4 or later",
    "llama.cpp": "llama.cpp",
    "ik": "ik_llama.cpp",
}
BUILT_IN = "built-in"
_FOLDER = Path(__file__).with_name("dialects")
_CACHE_VERSION = 1
_SECONDS = 60.0
_UNLISTED = {"-a", "--alias", "--n-gpu-layers", "--n-gpu-layers-draft", "--n-predict"}
"""Spellings that ik_llama.cpp takes and its help does not show."""
_ESSENTIAL = ("--model", "--ctx-size", "--port")


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What one llama-server understands.

    `switches` stand alone, `valued` flags are followed by a value. `values` holds, by flag, what may follow
    where that is a closed list. `removed` flags are still recognised, to be refused with a replacement.
    `stage_keys` are those of `--spec-type KIND:key=value`, empty where the flag takes names only;
    `combines` says that several kinds of speculation can be had at once.
    """

    dialect: DialectName
    source: str
    version: str
    switches: frozenset[str]
    valued: frozenset[str]
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    removed: Mapping[str, str] = field(default_factory=dict)
    stage_keys: tuple[str, ...] = ()
    combines: bool = True

    @property
    def name(self) -> str:
        """For messages: the family, and the binary where one was asked."""
        family = DIALECTS[self.dialect]
        return family if self.is_built_in else f"{family} ({self.source})"

    @property
    def is_built_in(self) -> bool:
        return self.source == BUILT_IN

    @property
    def spec_types(self) -> tuple[str, ...]:
        return self.values.get("--spec-type", ())

    @property
    def drafter_layouts(self) -> tuple[str, ...]:
        """Architectures of DFlash drafters that it reads."""
        from agent.server.compat import layouts_of

        return layouts_of(self.dialect)

    def knows(self, flag: str) -> bool:
        return flag in self.switches or flag in self.valued

    def first(self, *flags: str) -> str | None:
        """The first of several spellings that it knows."""
        return next((flag for flag in flags if self.knows(flag)), None)


def built_in(dialect: DialectName) -> Capabilities:
    """What a family supports as far as is known here, without a binary."""
    table = json.loads((_FOLDER / f"{dialect}.json").read_text("utf-8"))
    table.pop("about")
    return _from_table({**table, "source": BUILT_IN, "version": ""})


def dialect_of(capabilities: Capabilities) -> DialectName:
    """The family, by what only its members have. Its own `dialect` is not looked at."""
    kv_types = capabilities.values.get("--cache-type-k", ())
    if capabilities.stage_keys or capabilities.knows("--spec-autotune"):
        return "ik"
    if capabilities.first("--spec-dflash-cross-ctx", "--spec-branch-budget"):
        return "bee-0.3"
    own = capabilities.first("--spec-dm-controller", "--kv-tail-tokens")
    if own or any(kv_type.startswith("kvarn") for kv_type in kv_types):
        return "bee-0.4" if "draft-dflash" in capabilities.spec_types else "bee-0.3"
    return "bee-0.3" if any(kv_type.startswith("turbo") for kv_type in kv_types) else "llama.cpp"


def read_capabilities(
    binary: Path, cache_folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> Capabilities:
    """Asks a binary for its help, or remembers what it answered: an unchanged file is not run again.

    Args:
        cache_folder: where answers are kept; None = nowhere.
        environment: for the binary, without variables that would change its answers.

    Raises:
        UsageError: there is no such program, or it is no llama-server.
    """
    path = _program(binary)
    stamp = _stamp(path)
    note = cache_folder / "capabilities" / f"{_digest(str(path))}.json" if cache_folder else None
    known = _recall(note) if note else None
    if known and known["stamp"] == stamp:
        return _from_table(known["capabilities"])
    content = _file_digest(path)
    if known and known["content"] == content and known["stamp"]["libraries"] == stamp["libraries"]:
        capabilities = _from_table(known["capabilities"])
    else:
        capabilities = _ask(path, os.environ if environment is None else environment)
    if note:
        _remember(note, {"stamp": stamp, "content": content, "capabilities": _as_table(capabilities)})
    return capabilities


def parse_help(text: str, version: str = "", source: str = "") -> Capabilities:
    """Reads the output of `--help`.

    Understands llama.cpp's layout (options at the left edge, descriptions at column 40) with its forks,
    and the older one of ik_llama.cpp (options indented, the kinds of speculation on a continuation line).

    Raises:
        UsageError: it is not the help of a llama-server.
    """
    switches: set[str] = set()
    valued: set[str] = set()
    values: dict[str, tuple[str, ...]] = {}
    removed: dict[str, str] = {}
    stage_keys: tuple[str, ...] = ()
    combines = True
    for option in options_in(text):
        if option.replacement is not None:
            removed.update(dict.fromkeys(option.flags, option.replacement))
            continue
        (valued if option.hint else switches).update(option.flags)
        if option.allowed:
            values.update(dict.fromkeys(option.flags, option.allowed))
        if "--spec-type" in option.flags:
            stage_keys, combines = option.stage_keys, "|" not in option.hint
    if any(flag not in valued for flag in _ESSENTIAL):
        missing = ", ".join(flag for flag in _ESSENTIAL if flag not in valued)
        raise UsageError(
            f"{source or 'this program'} is no llama-server: its --help does not name {missing}",
            "name the llama-server binary itself",
        )
    found = Capabilities(
        "llama.cpp", source, version, frozenset(switches - valued), frozenset(valued), values, removed,
        stage_keys, combines,
    )  # fmt: skip
    return _completed(found, dialect_of(found))


def _completed(found: Capabilities, dialect: DialectName) -> Capabilities:
    """Adds what the help of a family leaves unsaid: lists of values, and ik's flags with hidden values.

    BeeLlama 0.3.1 offers a list of kinds, of which its server looks at the last one only (`type()` in
    common/common.h), and a DFlash drafter replaces the list.
    """
    known = built_in(dialect)
    values = {flag: known.values[flag] for flag in known.values if found.knows(flag)} | dict(found.values)
    hidden = (found.switches & known.valued) - known.switches if dialect == "ik" else frozenset()
    unlisted = known.valued & _UNLISTED if dialect == "ik" else frozenset()
    return Capabilities(
        dialect, found.source, found.version, found.switches - hidden, found.valued | hidden | unlisted,
        values, {**known.removed, **found.removed} if dialect == "ik" else found.removed,
        found.stage_keys, found.combines and dialect != "bee-0.3",
    )  # fmt: skip


def _program(binary: Path) -> Path:
    path = binary.expanduser()
    if path.is_dir() and (path / "llama-server").is_file():
        path = path / "llama-server"
    if not path.is_file():
        raise UsageError(f"there is no program {path}", "name the llama-server binary")
    if not os.access(path, os.X_OK):
        raise UsageError(f"{path} may not be run", f"make it executable: chmod +x {path}")
    return path.resolve()


def _ask(path: Path, environment: Mapping[str, str]) -> Capabilities:
    environment = shielded(environment)
    status, output = _run(path, "--help", environment)
    if status != 0 or not output.strip():
        reason = output.strip().splitlines()[-1][:200] if output.strip() else "it printed nothing"
        raise UsageError(f"{path} --help failed (status {status}): {reason}", "is it a llama-server?")
    version = re.search(r"^version:\s*(.+)$", _run(path, "--version", environment)[1], re.MULTILINE)
    return parse_help(output, version[1].strip() if version else "", str(path))


def shielded(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables for a llama-server, without those that would change its settings behind our back."""
    kept = {name: value for name, value in environment.items() if not name.startswith("LLAMA_")}
    return {**kept, "GGML_NO_BACKTRACE": "1"}


def _run(path: Path, option: str, environment: Mapping[str, str]) -> tuple[int, str]:
    # In its own folder: ggml loads backends from the present one too (`ggml_backend_load_best` in
    # ggml-backend-reg.cpp), which may be a stranger's repository.
    try:
        done = subprocess.run(
            [str(path), option], capture_output=True, env=dict(environment), timeout=_SECONDS, check=False,
            stdin=subprocess.DEVNULL, cwd=path.parent,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = getattr(error, "strerror", None) or f"it did not answer within {_SECONDS:.0f} s"
        raise UsageError(f"cannot run {path}: {reason}", "is it built for this machine?") from error
    out, err = (stream.decode("utf-8", "replace") for stream in (done.stdout, done.stderr))
    # `--help` goes to stdout and `--version` to stderr; the other one holds what drivers have to say.
    return done.returncode, out if option == "--help" and out.strip() else f"{out}\n{err}"


def _stamp(path: Path) -> dict[str, Any]:
    """Changes when the program does. The options of a build with shared libraries are in one of those."""
    status = path.stat()
    libraries = []
    for folder in {path.parent, path.parent.parent / "lib"}:
        for library in sorted(folder.glob("lib*")) if folder.is_dir() else ():
            if re.search(r"llama.*\.(so|dylib)|llama.*\.dll", library.name) and library.is_file():
                about = library.stat()
                libraries.append([library.name, about.st_size, about.st_mtime_ns])
    return {"size": status.st_size, "mtime_ns": status.st_mtime_ns, "libraries": sorted(libraries)}


def _recall(note: Path) -> dict[str, Any] | None:
    try:
        known = json.loads(note.read_text("utf-8"))
        return known if known["version"] == _CACHE_VERSION else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _remember(note: Path, what: dict[str, Any]) -> None:
    # Without it the binary is only asked again the next time.
    with suppress(OSError):
        write_whole(note, json.dumps({"version": _CACHE_VERSION, **what}))


def _as_table(capabilities: Capabilities) -> dict[str, Any]:
    table = asdict(capabilities)
    return {key: sorted(value) if isinstance(value, frozenset) else value for key, value in table.items()}


def _from_table(table: dict[str, Any]) -> Capabilities:
    return Capabilities(
        **{
            **table,
            "switches": frozenset(table["switches"]),
            "valued": frozenset(table["valued"]),
            "values": {flag: tuple(names) for flag, names in table["values"].items()},
            "stage_keys": tuple(table["stage_keys"]),
        }
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
