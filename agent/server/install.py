"""Installs a llama-server: checks the tools, builds, tries it out, and puts it where profiles find it."""

import json
import os
import platform
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from agent.core.errors import ServerError, UsageError
from agent.core.private_folder import make_private_folder
from agent.server.binaries import NOTE, PROGRAM, Installed, forget_choice, install_folder, installed
from agent.server.build import BuildOrder, Report, Step, build
from agent.server.hardware import Hardware, detect_hardware, free_space
from agent.server.launch import container_limit
from agent.server.locks import FileLock, released_at_end
from agent.server.recipe import Backend, Checkout, Release, load_recipe
from agent.server.sdist import Download, Indexes
from agent.server.toolchain import (
    System,
    Toolchain,
    choose_backend,
    find_toolchain,
    jobs_for,
    require_space,
)
from agent.server.try_out import Trial, runs_from, try_out

SourceKind = Literal["any", "index", "git"]


def usable_cores() -> int:
    """The cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, min(cores, container_limit() or cores))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a person asks for. Empty or zero leaves the decision here; `backend` None = by the hardware.

    `built` is a program that is there already and only has to be tried out and put in its place.
    """

    name: str
    version: str = ""
    tag: str = ""
    backend: Backend | None = None
    source: SourceKind = "any"
    jobs: int = 0
    web_page: bool = True
    keep_build: bool = False
    force: bool = False
    built: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """Where things go, and what is used of the outside world; tests hand in their own."""

    servers_folder: Path
    work_folder: Path
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    system: System = field(default_factory=System)
    hardware: Callable[[Path], Hardware] = detect_hardware
    free_space: Callable[[Path], int | None] = free_space
    indexes: Callable[[Mapping[str, str]], Indexes] = Indexes.configured
    try_out: Callable[..., Trial] = try_out
    cancelled: Callable[[], bool] = lambda: False
    cores: Callable[[], int] = usable_cores


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What would be done, with what; the first of the sources that works is taken."""

    release: Release
    tools: Toolchain
    sources: tuple[Any, ...]
    jobs: int


def release_for(wish: Wish) -> Release:
    """The release that a wish means.

    Raises:
        UsageError: there is no such recipe, version or tag.
    """
    recipe = load_recipe(wish.name)
    return recipe.at_tag(wish.tag) if wish.tag else recipe.release(wish.version)


def find_there(release: Release, servers_folder: Path) -> Installed | None:
    """The installation of this release, if it is there already."""
    return next((one for one in installed(servers_folder) if one.key == release.key), None)


def make_plan(wish: Wish, release: Release, place: Workplace) -> Plan:
    """Looks whether everything is there that a build needs. Nothing is downloaded or written.

    Raises:
        UsageError: the wish cannot be understood.
        ServerError: a tool or disk space is missing; the hint says how to get it.
    """
    sources = release.sources(wish.source)
    hardware = place.hardware(place.work_folder)
    backend = wish.backend or choose_backend(hardware, place.system)
    only_git = all(isinstance(source, Checkout) for source in sources)
    tools = find_toolchain(backend, hardware, place.system, needs_git=only_git)
    if tools.git is None:
        sources = tuple(source for source in sources if not isinstance(source, Checkout))
    size = max((0 if isinstance(source, Checkout) else source.bytes for source in sources), default=0)
    require_space(place.work_folder, backend, size, place.free_space(place.work_folder))
    jobs = wish.jobs or jobs_for(backend, place.cores(), hardware.ram_available)
    return Plan(release=release, tools=tools, sources=sources, jobs=jobs)


def install(wish: Wish, release: Release, place: Workplace, report: Report) -> Installed:
    """The installed version, built if it is not there. Blocks for minutes; what is interrupted goes on later.

    Args:
        release: what `release_for` found for the wish.

    Raises:
        UsageError, ServerError: see `make_plan`; also when it cannot be had, built or started.
        CancelledError: `place.cancelled` said so.
    """
    there = find_there(release, place.servers_folder)
    if there is not None and not wish.force:
        return there
    plan = None if wish.built else make_plan(wish, release, place)
    try:
        make_private_folder(place.work_folder)
        make_private_folder(place.servers_folder)
        lock = FileLock(place.work_folder / f"{release.name}-{release.version}.lock")
        if not lock.try_acquire():
            raise ServerError(f"{release.key} is being installed by another program", "wait for it")
        with released_at_end(lock):
            return _install(wish, plan, place, report) if plan else _adopt(wish, release, place, report)
    except OSError as error:
        where = error.filename or place.work_folder
        raise ServerError(
            f"cannot write {where}: {error.strerror or error}",
            "look at the disk and the permissions; AGENT_CACHE_HOME and AGENT_DATA_HOME choose other places",
        ) from error


def uninstall(key: str, servers_folder: Path) -> Installed:
    """Removes an installed version.

    Args:
        key: `NAME@VERSION`.

    Raises:
        UsageError: it is not installed.
        ServerError: a server of it runs, or it cannot be removed.
    """
    wanted = find_installed(key, servers_folder)
    if running := runs_from(wanted.folder):
        raise ServerError(
            f"{wanted.key} is running (process {', '.join(map(str, running))})",
            "stop it first, with `agent server stop`",
        )
    try:
        # Without its note it is no installation any more, whatever happens to the rest.
        (wanted.folder / NOTE).unlink()
        shutil.rmtree(wanted.folder)
    except OSError as error:
        raise ServerError(f"cannot remove {wanted.folder}: {error.strerror}") from error
    forget_choice(servers_folder, wanted.key)
    return wanted


def find_installed(key: str, servers_folder: Path) -> Installed:
    """The installed version that `NAME` or `NAME@VERSION` means.

    Raises:
        UsageError: there is none, or several for a bare name.
    """
    name, _, version = key.partition("@")
    everything = installed(servers_folder)
    matches = [one for one in everything if one.name == name and version in ("", one.version)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        known = ", ".join(one.key for one in matches)
        raise UsageError(f"several versions of {name} are installed", f"say which: {known}")
    known = ", ".join(one.key for one in everything)
    raise UsageError(
        f"{key} is not installed",
        f"installed are {known}" if known else f"get it with `agent server install {name}`",
    )


def _install(wish: Wish, plan: Plan, place: Workplace, report: Report) -> Installed:
    began = time.monotonic()
    order = BuildOrder(
        release=plan.release,
        tools=plan.tools,
        sources=plan.sources,
        work_folder=place.work_folder,
        jobs=plan.jobs,
        web_page=wish.web_page,
        environment=place.environment,
        download=Download(indexes=place.indexes(place.environment), cancelled=place.cancelled),
    )
    built = build(order, report)
    seconds = time.monotonic() - began
    trial = _try(plan.release, built.program, place, report, gpu=plan.tools.backend != "cpu")
    facts = {
        "backend": plan.tools.label,
        "built_with": plan.tools.versions,
        "source": built.source.identity,
        "commit": built.commit,
        "web_page": built.web_page,
        "definitions": dict(built.flags),
        "build_seconds": round(seconds, 1),
    }
    result = _put_in_place(built.program, plan.release, trial, facts, place.servers_folder)
    if not wish.keep_build:
        shutil.rmtree(built.folder, ignore_errors=True)
    return result


def _adopt(wish: Wish, release: Release, place: Workplace, report: Report) -> Installed:
    """Takes a program that somebody built; what it was made of is what they say."""
    program = (wish.built or Path()).expanduser().resolve()
    trial = _try(release, program, place, report, gpu=wish.backend not in (None, "cpu"))
    facts = {"backend": wish.backend or "", "source": f"built before: {program}"}
    return _put_in_place(program, release, trial, facts, place.servers_folder)


def _try(release: Release, program: Path, place: Workplace, report: Report, *, gpu: bool) -> Trial:
    report(Step(stage="try", detail=f"{release.key} with a model of random numbers"))
    trial = place.try_out(program, place.environment, gpu=gpu, cancelled=place.cancelled)
    dialect = trial.capabilities.dialect
    if release.dialect not in (None, dialect):
        raise ServerError(
            f"{program} speaks the dialect {dialect}, but {release.key} should speak {release.dialect}",
            "it is another program, or its recipe is wrong",
        )
    return trial


def _put_in_place(
    program: Path, release: Release, trial: Trial, facts: Mapping[str, Any], servers_folder: Path
) -> Installed:
    """Puts the program and its note where they belong, at once; a running older one keeps its file."""
    note = {
        "name": release.name,
        "version": release.version,
        "dialect": trial.capabilities.dialect,
        "installed_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "reported": trial.capabilities.version,
        "verified": trial.verified,
        "machine": platform.machine(),
        **facts,
    }
    final = install_folder(servers_folder, release.name, release.version)
    fresh = servers_folder / f".{final.name}.new"
    old = servers_folder / f".{final.name}.old"
    for leftover in (fresh, old):
        shutil.rmtree(leftover, ignore_errors=True)
    (fresh / "bin").mkdir(parents=True)
    shutil.copy2(program, fresh / "bin" / PROGRAM)
    (fresh / "bin" / PROGRAM).chmod(0o755)
    (fresh / NOTE).write_text(json.dumps(note, indent=2) + "\n", "utf-8")
    if final.exists():
        final.replace(old)
    try:
        fresh.replace(final)
    except OSError:
        with suppress(OSError):
            old.replace(final)
        raise
    shutil.rmtree(old, ignore_errors=True)
    return next(one for one in installed(servers_folder) if one.folder == final)
