"""`agent server install`, `use`, `installed` and `uninstall`: several llama-server versions side by side."""

import argparse
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent.server.binaries import Installed
    from agent.server.build import Step
    from agent.server.install import Wish, Workplace
    from agent.server.recipe import Release

BACKENDS = ("cpu", "cuda", "vulkan", "rocm", "metal")
_STEPS_OF_PERCENT = 10


def add_actions(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds the four actions to `agent server`."""
    _add_install(actions)
    use = actions.add_parser("use", help="choose which installed server profiles get")
    use.add_argument("server", metavar="NAME[@VERSION]", help="as `agent server installed` lists it")
    use.set_defaults(func=run_use)
    there = actions.add_parser("installed", help="the servers that were installed here")
    there.add_argument("--json", action="store_true", help="a JSON array on stdout")
    there.set_defaults(func=run_installed)
    remove = actions.add_parser("uninstall", help="remove an installed server")
    remove.add_argument("server", metavar="NAME@VERSION", help="as `agent server installed` lists it")
    remove.set_defaults(func=run_uninstall)


def _add_install(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    action = actions.add_parser(
        "install",
        help="build a llama-server for this machine, or add the embedded engine",
        description="Checks the tools, gets a pinned source, builds it for what this machine has, tries it "
        "out and keeps it beside other versions. Interrupted, it goes on the next time.",
    )
    action.add_argument(
        "name", nargs="?", metavar="NAME", help="beellama, llama.cpp or embedded; without one: what there is"
    )
    which = action.add_mutually_exclusive_group()
    which.add_argument(
        "--version", metavar="V", default="", help="one of the pinned versions; default: the first"
    )
    which.add_argument("--tag", metavar="TAG", default="", help="any tag of its git repository instead")
    computing = action.add_mutually_exclusive_group()
    computing.add_argument(
        "--backend", choices=BACKENDS, help="what computes; default: what this machine has"
    )
    computing.add_argument("--cpu", action="store_true", help="the same as --backend cpu")
    action.add_argument(
        "--source", choices=("any", "index", "git"), default="any",
        help="from a package index, or a git repository; default: the first that works",
    )  # fmt: skip
    action.add_argument(
        "-j",
        "--jobs",
        type=_jobs,
        default=0,
        metavar="N",
        help="compilers at a time; default: by cores and memory",
    )
    action.add_argument(
        "--no-web-page", action="store_true", help="do not fetch the server's own web page during the build"
    )
    action.add_argument(
        "--keep-build", action="store_true", help="keep source and build tree (hundreds of MB)"
    )
    action.add_argument(
        "--built", metavar="PATH", help="a llama-server that you have built: only try it out and keep a copy"
    )
    action.add_argument("--force", action="store_true", help="build it again although it is installed")
    action.add_argument("--quiet", action="store_true", help="only the result and errors")
    action.add_argument("--dry-run", action="store_true", help="only check, and say what would be done")
    action.set_defaults(func=run_install)


def _jobs(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of compilers: 1 to 1024")
    return int(text)


def run_install(arguments: argparse.Namespace) -> int:
    """Builds and installs, or says that it is there."""
    if not arguments.name:
        return _list_recipes()
    if arguments.name == "embedded":
        return _install_engine(arguments)
    from agent.resources import expand_home
    from agent.server.install import Wish, find_there, install, release_for

    wish = Wish(
        name=arguments.name,
        version=arguments.version,
        tag=arguments.tag,
        backend="cpu" if arguments.cpu else arguments.backend,
        source=arguments.source,
        jobs=arguments.jobs,
        web_page=not arguments.no_web_page,
        keep_build=arguments.keep_build,
        force=arguments.force,
        built=expand_home(arguments.built) if arguments.built else None,
    )
    place = _workplace()
    release = release_for(wish)
    there = find_there(release, place.servers_folder)
    if there is not None and not wish.force:
        print(f"{there.key}: is installed, {there.path}", file=sys.stderr)
        _say_if_for_less(there, wish, place)
        return 0
    if arguments.dry_run and not wish.built:
        return _say_plan(wish, release, place)
    if not arguments.quiet and not wish.built:
        _say_plan(wish, release, place)
    show = _Shown(arguments.quiet)
    try:
        with _ended_like_ctrl_c():
            result = install(wish, release, place, show)
    except KeyboardInterrupt:
        show.end()
        print("agent: stopped; run the same command again and it goes on from here", file=sys.stderr)
        raise
    finally:
        show.end()
    print(f"{result.key}: installed, {result.path}", file=sys.stderr)
    print(f"verified with {result.verified}", file=sys.stderr)
    _say_who_uses(result, place.servers_folder)
    return 0


def run_use(arguments: argparse.Namespace) -> int:
    """Writes the choice down."""
    from agent.resources import servers_folder
    from agent.server.binaries import choose
    from agent.server.install import find_installed

    folder = servers_folder()
    wanted = find_installed(arguments.server, folder)
    choose(folder, wanted)
    print(
        f"{wanted.key}: from now on for profiles of the dialect {wanted.dialect} and those that name none",
        file=sys.stderr,
    )
    return 0


def run_installed(arguments: argparse.Namespace) -> int:
    """Lists what is installed, the newest first."""
    from agent.resources import servers_folder
    from agent.server.binaries import installed

    folder = servers_folder()
    everything = installed(folder)
    if arguments.json:
        import json

        print(json.dumps([_as_row(one) for one in everything], indent=2))
        return 0
    for one in everything:
        parts = [one.key, f"dialect {one.dialect}", one.backend, one.installed_at[:10], str(one.path)]
        print("  ".join([*filter(None, parts), *(["chosen"] if one.chosen else [])]))
    if not everything:
        print(f"no server is installed in {folder}; see `agent server install`", file=sys.stderr)
    return 0


def run_uninstall(arguments: argparse.Namespace) -> int:
    """Removes one version."""
    from agent.core.errors import UsageError
    from agent.resources import servers_folder
    from agent.server.install import uninstall

    if "@" not in arguments.server:
        raise UsageError(
            f"{arguments.server!r} names no version",
            "say which, as NAME@VERSION; see `agent server installed`",
        )
    removed = uninstall(arguments.server, servers_folder())
    print(f"{removed.key}: removed from {removed.folder.parent}", file=sys.stderr)
    return 0


def _list_recipes() -> int:
    from agent.resources import servers_folder
    from agent.server.binaries import installed
    from agent.server.engine_extra import engine_version
    from agent.server.recipe import load_recipe, recipe_names

    there = {one.key for one in installed(servers_folder())}
    for name in recipe_names():
        for release in load_recipe(name).releases:
            state = "installed" if release.key in there else "not installed"
            print(f"{release.key}  {state}  {release.about}")
    version = engine_version()
    print(
        f"embedded  {f'installed ({version})' if version else 'not installed'}  llama.cpp inside this program"
    )
    return 0


def _install_engine(arguments: argparse.Namespace) -> int:
    import tempfile

    from agent.cli.progress import ProgressLine
    from agent.server.engine_extra import Environment, command_for, engine_version, install_engine

    place = Environment()
    if version := engine_version():
        print(f"embedded: is installed, xllamacpp {version}", file=sys.stderr)
        return 0
    command = command_for(place)
    if arguments.dry_run:
        print(f"would run: {' '.join(command)}", file=sys.stderr)
        return 0
    line = ProgressLine()
    try:
        with tempfile.TemporaryFile() as log, _ended_like_ctrl_c():
            version = install_engine(
                place, log, os.environ, lambda text: None if arguments.quiet else line.show(text.strip())
            )
    finally:
        line.end()
    print(f"embedded: installed, xllamacpp {version}", file=sys.stderr)
    return 0


def _say_plan(wish: "Wish", release: "Release", place: "Workplace") -> int:
    from agent.server.install import make_plan

    plan = make_plan(wish, release, place)
    print(
        f"{plan.release.key}: from {plan.sources[0].label}, for {plan.tools.label}, "
        f"{plan.jobs} compilers at a time, with {plan.tools.versions}",
        file=sys.stderr,
    )
    return 0


def _say_if_for_less(there: "Installed", wish: "Wish", place: "Workplace") -> None:
    """One for the processor is no use to somebody with a graphics processor, and nobody would notice."""
    from agent.server.toolchain import choose_backend

    wanted = wish.backend or choose_backend(place.hardware(place.work_folder), place.system)
    if there.backend == "CPU" and wanted != "cpu":
        print(f"hint: it is for the processor alone; --force builds it for {wanted}", file=sys.stderr)


def _say_who_uses(result: "Installed", folder: Path) -> None:
    from agent.server.binaries import chosen_keys, installed

    dialects = {one.key: one.dialect for one in installed(folder)}
    other = next((key for key in chosen_keys(folder) if dialects.get(key) == result.dialect), None)
    if other not in (None, result.key):
        print(
            f"hint: profiles of the dialect {result.dialect} still get {other}; "
            f"`agent server use {result.key}` changes that",
            file=sys.stderr,
        )


def _workplace() -> "Workplace":
    from agent.resources import cache_folder, servers_folder
    from agent.server.install import Workplace

    return Workplace(servers_folder=servers_folder(), work_folder=cache_folder() / "builds")


def _as_row(one: "Installed") -> dict[str, Any]:
    from dataclasses import asdict

    return {**asdict(one), "path": str(one.path)}


@contextmanager
def _ended_like_ctrl_c() -> Iterator[None]:
    """A closed terminal or a polite kill has to end the compilers too, so both come as an interruption."""

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Shown:
    """Shows the steps of an installation on one line."""

    def __init__(self, quiet: bool) -> None:
        from agent.cli.progress import ProgressLine

        self._line = None if quiet else ProgressLine()
        self._last = ""

    def __call__(self, step: "Step") -> None:
        if self._line is None:
            return
        percent = int(100 * step.done / step.total) if step.total else 0
        essence = f"{step.stage} {percent // _STEPS_OF_PERCENT}"
        if not step.total:
            self._line.show(f"{step.stage}: {step.detail}", f"{step.stage} {step.detail}")
            return
        text = f"{step.stage} {percent:3d}%{_amount(step)} {step.detail}"
        if text != self._last:
            self._last = text
            self._line.show(text, essence)

    def end(self) -> None:
        if self._line is not None:
            self._line.end()


def _amount(step: "Step") -> str:
    if step.stage == "download":
        from agent.cli.progress import show_bytes

        return f", {show_bytes(step.done)} of {show_bytes(step.total)}"
    left = "" if step.seconds_left is None else f", {_about(step.seconds_left)} left"
    return left if step.total == 100 else f", {step.done} of {step.total}{left}"


def _about(seconds: float) -> str:
    return f"about {seconds:.0f} s" if seconds < 90 else f"about {seconds / 60:.0f} min"
