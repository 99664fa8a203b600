"""Builds a llama-server from source: gets the source, configures it, compiles it, with progress.

Everything happens in one folder, whose name holds the source and the definitions. Whatever interrupts it, the
next attempt with the same order finds the folder and goes on.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from agent.core.errors import ServerError
from agent.core.private_folder import make_private_folder
from agent.server.program import Estimate, run_logged
from agent.server.recipe import Checkout, Release, Sdist, build_target, definitions
from agent.server.sdist import Download, fetch_sdist, unpack
from agent.server.sources import CancelledError
from agent.server.toolchain import Toolchain

_ERROR = re.compile(
    r"(?:^|[\s:])(?:fatal )?error\b ?:|^CMake Error|^nvcc fatal|undefined reference to"
    r"|No space left on device|Killed signal|^Killed|internal compiler error"
    r"|^ninja: error|\*\*\* No rule|^c?make: \*\*\*"
)
_KILLED = re.compile(r"Killed signal|^Killed\b|terminated program|signal 9")
_FULL = "No space left on device"
_NINJA = re.compile(r"^\[\s*(\d+)/(\d+)\]")
_MAKE = re.compile(r"^\[\s*(\d+)%\]")
_GIT = re.compile(r"^(?:remote: )?(\w[\w ]+):\s+(\d+)%")
_GIT_TROUBLE = re.compile(r"(?:remote: )?(?:fatal|error): ")
_NOT_FOR_THE_BUILD = (
    "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN",
    "MAKEFLAGS",
    "MAKELEVEL",
    "MFLAGS",
    "NINJA_STATUS",
)
"""Keys are nobody's business there. A `make` above would hand its own flags down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Where the work is. `stage` is a word for it; `done` of `total` are bytes of a download, else parts."""

    stage: str
    done: int = 0
    total: int = 0
    detail: str = ""
    seconds_left: float | None = None


Report = Callable[[Step], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOrder:
    """What is built, with what. `work_folder` keeps archives and build trees; it may be deleted when idle."""

    release: Release
    tools: Toolchain
    sources: tuple[Sdist | Checkout, ...]
    work_folder: Path
    jobs: int
    web_page: bool = True
    environment: Mapping[str, str]
    download: Download = field(default_factory=Download)

    @property
    def child_environment(self) -> dict[str, str]:
        kept = {name: text for name, text in self.environment.items() if name not in _NOT_FOR_THE_BUILD}
        return {**kept, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}

    def folder(self, source: Sdist | Checkout) -> Path:
        """Where this source is built this way."""
        what = [source.identity, self.tools.backend, self.tools.architectures, self.tools.generator]
        what += [str(self.tools.nvcc), str(self.web_page)]
        what += [json.dumps(dict(self.tools.language_flags), sort_keys=True)]
        what += [json.dumps(dict(self.release.definitions), sort_keys=True)]
        key = hashlib.sha256("\n".join(what).encode("utf-8")).hexdigest()[:12]
        return self.work_folder / f"{self.release.name}-{self.release.version}-{key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A program that was compiled. `commit` is what a tag pointed at; `flags` what cmake was told."""

    program: Path
    folder: Path
    source: Sdist | Checkout
    commit: str
    flags: Mapping[str, str]
    web_page: bool


def build(order: BuildOrder, report: Report) -> Built:
    """Gets the source and compiles it; goes on where an earlier attempt was interrupted.

    Raises:
        ServerError: no source can be had, or it does not compile; names the first error and the log.
        CancelledError: `order.download.cancelled` said so.
        OSError: the work folder cannot be written.
    """
    reasons: list[str] = []
    for source in order.sources:
        folder = order.folder(source)
        make_private_folder(folder)
        try:
            commit = _get_source(source, folder, order, report)
        except ServerError as error:
            # The last one's hint is the one to show; a source that is left can still be tried.
            if source is order.sources[-1]:
                raise ServerError("; ".join([*reasons, error.message]), error.hint) from error
            reasons.append(error.message)
            report(Step(stage="source", detail=f"{error.message}; trying {order.sources[-1].label}"))
            continue
        flags = _configure(folder, order, report)
        _compile(folder, order, report)
        program = folder / "build" / "bin" / build_target()
        if not program.is_file():
            raise ServerError(f"the build ended well, but left no {program}", f"see {_log(folder)}")
        page = order.web_page and "embedded 0 assets" not in _log(folder).read_text("utf-8", "replace")
        return Built(program=program, folder=folder, source=source, commit=commit, flags=flags, web_page=page)
    raise ServerError(f"{order.release.key} has no source")


def _get_source(source: Sdist | Checkout, folder: Path, order: BuildOrder, report: Report) -> str:
    target = folder / "source"
    if isinstance(source, Checkout):
        return _clone(source, target, order, report)
    if target.is_dir():
        return ""
    archive = fetch_sdist(
        source,
        order.work_folder / "archives",
        lambda done, total: report(Step(stage="download", done=done, total=total, detail=source.file)),
        order.download,
    )
    report(Step(stage="unpack", detail=archive.name))
    unpack(archive, source.folder, target)
    return ""


def _clone(source: Checkout, target: Path, order: BuildOrder, report: Report) -> str:
    """One commit of a repository, without its history. Returns the commit."""
    git, done = order.tools.git, target.with_name("source.commit")
    if target.is_dir() and done.is_file():
        return done.read_text("ascii").strip()
    if git is None:
        raise ServerError("git is not installed", "install git")
    target.mkdir(exist_ok=True)
    here = [str(git), "-C", str(target)]
    fetch = [*here, "fetch", "--depth", "1", "--no-tags", "--progress", source.url, f"refs/tags/{source.tag}"]
    head = target / ".git" / "FETCH_HEAD"
    for command in (
        [*here, "-c", "init.defaultBranch=main", "init", "--quiet"],
        fetch,
        [*here, "-c", "advice.detachedHead=false", "checkout", "--quiet", "--force", "FETCH_HEAD^{commit}"],
    ):
        progress = _GitProgress(source, report)
        status, last = _run(command, target.parent, order, progress)
        if status != 0:
            hint = "look at the connection; " if command is fetch else ""
            reason = progress.trouble or last or f"git ended with status {status}"
            raise ServerError(
                f"cannot get {source.label}: {reason}", f"{hint}the log is {_log(target.parent)}"
            )
    commit = (target / ".git" / "HEAD").read_text("ascii").strip()
    if source.commit and commit != source.commit:
        shutil.rmtree(target)
        raise ServerError(
            f"{source.label} is commit {commit}, not {source.commit} that was pinned: the tag was moved",
            "do not trust it before you know why; --tag with another tag builds that one",
        )
    head.unlink(missing_ok=True)
    done.write_text(f"{commit}\n", "ascii")
    return commit


class _GitProgress:
    """Reports git's percentages, and remembers the first line that says what went wrong."""

    def __init__(self, source: Checkout, report: Report) -> None:
        self._source = source
        self._report = report
        self.trouble = ""

    def __call__(self, line: str) -> None:
        if match := _GIT.match(line):
            detail = f"{self._source.tag}: {match[1]}"
            self._report(Step(stage="clone", done=int(match[2]), total=100, detail=detail))
        elif not self.trouble and _GIT_TROUBLE.match(line):
            self.trouble = line.strip()


def _configure(folder: Path, order: BuildOrder, report: Report) -> dict[str, str]:
    source, tools = folder / "source", order.tools
    lists = [source / "CMakeLists.txt", source / "ggml" / "CMakeLists.txt"]
    text = re.sub(r"option\((\w+)\s+", r"option(\1 ", "\n".join(map(_text, lists)))
    flags = dict(tools.language_flags) | definitions(
        order.release, tools.backend, tools.architectures, web_page=order.web_page, source_options=text
    )
    if tools.nvcc and tools.backend == "cuda":
        flags["CMAKE_CUDA_COMPILER"] = str(tools.nvcc)
    report(Step(stage="configure", detail=tools.label))
    command = [str(tools.cmake), "-S", str(source), "-B", str(folder / "build"), "-G", tools.generator]
    command += [
        f"-DCMAKE_MAKE_PROGRAM={tools.make_program}",
        *(f"-D{name}={value}" for name, value in flags.items()),
    ]
    trouble = _Trouble()
    status, _ = _run(command, folder, order, trouble.look_at)
    if status != 0:
        # A half-written cache can keep the next attempt from succeeding.
        (folder / "build" / "CMakeCache.txt").unlink(missing_ok=True)
        raise trouble.as_error(
            f"cmake does not accept this machine for {order.release.key}", status, folder, order
        )
    return flags


def _compile(folder: Path, order: BuildOrder, report: Report) -> None:
    command = [str(order.tools.cmake), "--build", str(folder / "build"), "--target", build_target()]
    command += ["--parallel", str(order.jobs)]
    trouble, estimate = _Trouble(), Estimate()
    report(Step(stage="compile", detail=f"{order.jobs} at a time"))

    def on_line(line: str) -> None:
        trouble.look_at(line)
        if progress := progress_in(line):
            done, total = progress
            left = estimate.seconds_left(done, total)
            report(Step(stage="compile", done=done, total=total, detail=_last_word(line), seconds_left=left))

    status, _ = _run(command, folder, order, on_line)
    if status != 0:
        raise trouble.as_error(f"{order.release.key} does not compile", status, folder, order)


def progress_in(line: str) -> tuple[int, int] | None:
    """How much of a build is done, and of how much, from a line of ninja or make."""
    if match := _NINJA.match(line):
        return int(match[1]), int(match[2])
    match = _MAKE.match(line)
    return (int(match[1]), 100) if match else None


class _Trouble:
    """Remembers the first line of an output that says what went wrong, and what follows it."""

    def __init__(self) -> None:
        self.first = ""
        self._waiting_for_more = False
        self.killed = False
        self.full = False
        self._last = ""

    def look_at(self, line: str) -> None:
        line = line.strip()
        if not line:
            return
        self._last = line
        self.killed = self.killed or bool(_KILLED.search(line))
        self.full = self.full or _FULL in line
        if self._waiting_for_more:
            self.first, self._waiting_for_more = f"{self.first} {line}", False
        if not self.first and _ERROR.search(line):
            self.first = line
            self._waiting_for_more = line.startswith("CMake Error")

    def as_error(self, what: str, status: int, folder: Path, order: BuildOrder) -> ServerError:
        log = _log(folder)
        if self.full:
            return ServerError(
                f"the disk of {folder} is full",
                "make room and run the same command again; it goes on from there",
            )
        if self.killed or status == -9:
            fewer = max(1, order.jobs // 2)
            return ServerError(
                f"{what}: a compiler was killed, most likely because the memory was used up",
                f"run it again with --jobs {fewer}; it goes on from there. The log is {log}",
            )
        reason = self.first or self._last or f"it ended with status {status}"
        return ServerError(f"{what}: {reason[:400]}", f"the whole log is {log}")


def _run(
    command: list[str], folder: Path, order: BuildOrder, on_line: Callable[[str], None]
) -> tuple[int, str]:
    """Status and last line. The output is added to the log of the folder."""
    last = ""

    def remember(line: str) -> None:
        nonlocal last
        last = line.strip() or last
        on_line(line)

    with _log(folder).open("ab") as log:
        log.write(f"\n$ {' '.join(command)}\n".encode())
        log.flush()
        try:
            status = run_logged(
                command,
                log=log,
                environment=order.child_environment,
                on_line=remember,
                cancelled=order.download.cancelled,
            )
        except (CancelledError, KeyboardInterrupt):
            with suppress(OSError):
                log.write(b"\n(interrupted)\n")
            raise
    return status, last


def _log(folder: Path) -> Path:
    return folder / "build.log"


def _last_word(line: str) -> str:
    return line.rsplit(maxsplit=1)[-1].rpartition("/")[2] if line.strip() else ""


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
