"""The program that serves the model: whether it is there, what getting it takes, and getting it."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.core.errors import AgentError

if TYPE_CHECKING:
    from agent.app.setup.option import Build, Obstacle
    from agent.config.model import Settings
    from agent.server.build import Step
    from agent.server.engine_extra import Environment
    from agent.server.install import Workplace
    from agent.server.profile import Profile
    from agent.ui.options import Headway, Missing, Progress


def usual_workplace() -> "Workplace":
    from agent.resources import cache_folder, servers_folder
    from agent.server.install import Workplace

    return Workplace(servers_folder=servers_folder(), work_folder=cache_folder() / "builds")


def this_environment() -> "Environment":
    from agent.server.engine_extra import Environment

    return Environment()


def has_engine() -> bool:
    """Whether the embedded engine can be imported, without importing it."""
    import importlib
    from importlib.util import find_spec

    importlib.invalidate_caches()  # it may have been installed since this program began
    return find_spec("xllamacpp") is not None


@dataclass(frozen=True)
class Programs:
    """What is used of the outside world; tests hand in their own."""

    workplace: "Callable[[], Workplace]" = usual_workplace
    environment: "Callable[[], Environment]" = this_environment
    has_engine: Callable[[], bool] = has_engine

    def missing(self, settings: "Settings", profile: "Profile") -> "list[Missing]":
        """The engine or the llama-server, if it is not there."""
        if profile.engine == "embedded":
            return [] if self.has_engine() else [_engine_to_install(self.environment())]
        from agent.server.binaries import find_binary

        place = self.workplace()
        try:
            find_binary(profile, place.servers_folder, os.environ, settings.server.binary)
        except AgentError as error:
            if settings.server.binary:
                from agent.ui.options import Missing

                return [Missing(what=error.message, remedy=error.hint)]
            return [_server_to_build(profile, place)]
        return []

    def get(
        self,
        settings: "Settings",
        profile: "Profile",
        progress: "Progress",
        is_stopped: Callable[[], bool],
    ) -> None:
        """Installs or builds it, if that can be done here. Blocks, a build for minutes.

        Raises:
            AgentError: it cannot be had.
            CancelledError: `is_stopped` said so.
        """
        if not any(item.can_fetch for item in self.missing(settings, profile)):
            return
        if profile.engine == "embedded":
            _install_engine(self.environment(), progress, is_stopped)
        else:
            _build_server(profile, self.workplace(), progress, is_stopped)


def _engine_to_install(place: "Environment") -> "Missing":
    import shlex

    from agent.app.setup.options import engine_build
    from agent.server.engine_extra import command_for
    from agent.ui.options import Missing

    build, obstacles = engine_build(place)
    if obstacles:
        remedy = f"{obstacles[0].message}; type this and begin again, or choose a profile for a llama-server"
        return Missing(what="The embedded engine is not installed", remedy=remedy, command=obstacles[0].hint)
    return Missing(
        what="The embedded engine (xllamacpp) is not installed",
        remedy="a wheel from the package index, about a minute; this is what is run:",
        command=shlex.join(command_for(place)),
        download_bytes=build.bytes,
        can_fetch=True,
    )


def _server_to_build(profile: "Profile", place: "Workplace") -> "Missing":
    from agent.app.setup.options import server_build
    from agent.ui.options import Missing

    build, obstacles = server_build(profile.dialect, place)
    command = _install_line(build)
    if obstacles:
        return _not_buildable(obstacles[0], command)
    if build is None:
        return Missing(what="There is no llama-server here", remedy="set server.binary to the path of yours")
    minutes = f"about {max(1, build.low_minutes):.0f} to {max(2, build.high_minutes):.0f} minutes"
    return Missing(
        what=f"There is no llama-server here for the profile {profile.name}",
        remedy=f"{build.what} is built {build.label}: {minutes}, {build.bytes / 1e9:.1f} GB of disk "
        "meanwhile; the same as",
        command=command,
        can_fetch=True,
    )


def _not_buildable(obstacle: "Obstacle", command: str) -> "Missing":
    from agent.ui.options import Missing

    then = f"; then Enter, or `{command}`" if command else ""
    return Missing(
        what="There is no llama-server here",
        remedy=f"{obstacle.message}. Do this{then}:",
        command=obstacle.hint,
    )


def _install_line(build: "Build | None") -> str:
    if build is None or build.wish is None:
        return ""
    version = f" --version {build.wish.version}" if build.wish.version else ""
    return f"agent server install {build.wish.name}{version}"


def _install_engine(place: "Environment", progress: "Progress", is_stopped: Callable[[], bool]) -> None:
    import tempfile

    from agent.server.engine_extra import install_engine
    from agent.ui.options import Headway

    def show(line: str) -> None:
        if line.strip():
            progress(Headway(name=line.strip()[:200], is_bytes=False))

    with tempfile.TemporaryFile() as log:
        install_engine(place, log, os.environ, show, is_stopped)


def _build_server(
    profile: "Profile", place: "Workplace", progress: "Progress", is_stopped: Callable[[], bool]
) -> None:
    from dataclasses import replace

    from agent.app.setup.options import server_build
    from agent.server.install import install, release_for

    build, _ = server_build(profile.dialect, place)
    if build is None or build.wish is None:
        return
    what = build.what
    stoppable = replace(place, cancelled=is_stopped)
    install(build.wish, release_for(build.wish), stoppable, lambda step: progress(_headway(what, step)))


def _headway(what: str, step: "Step") -> "Headway":
    from agent.ui.options import Headway

    seconds = step.seconds_left
    left = "" if seconds is None else f", about {max(1, round(seconds / 60))} min left"
    name = f"{what}: {step.stage}{left} {step.detail}".rstrip()
    return Headway(name=name[:200], done=step.done, whole=step.total, is_bytes=step.stage == "download")
