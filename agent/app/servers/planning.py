"""What a server is started with: its files, found and judged, its program, the fitting batch."""

import asyncio
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from agent.app.background import in_background
from agent.app.servers.early import states_folder
from agent.app.servers.fitting import fit_to_machine
from agent.core.errors import ModelFileError
from agent.core.events import ServerState
from agent.core.private_folder import make_private_folder
from agent.resources import runtime_folder, state_folder
from agent.server.launch import EMBEDDED_COMMAND, LaunchPlan
from agent.server.model_file import ModelFile
from agent.server.profile import KINDS_WITH_A_MODEL
from agent.server.slot_states import folder_of

if TYPE_CHECKING:
    from agent.app.servers.serving import Progress, Serving
    from agent.server.caps import Capabilities


async def launch_plan(serving: "Serving", progress: "Progress") -> LaunchPlan:
    """Everything that a start needs. Nothing is downloaded.

    Raises:
        ModelFileError: a file is missing or damaged, or the draft does not fit the target.
        UsageError: there is no program, or it cannot do what the profile says.
    """
    profile, settings = serving.profile, serving.loaded.settings
    begin = time.monotonic()
    loop = asyncio.get_running_loop()

    def tell(state: str, detail: str) -> None:
        progress(ServerState(state=state, detail=detail, elapsed_seconds=round(time.monotonic() - begin, 1)))

    def report(done: int, total: int, label: str) -> None:
        share = f" {100 * done // total} %" if total else ""
        loop.call_soon_threadsafe(tell, "checking", f"{label}{share}")

    paths = [
        await in_background(lambda file=file: _located(serving, file, report)) for file in profile.model_files
    ]
    draft = paths[1] if len(paths) > 1 else None
    capabilities = await in_background(serving.capabilities)
    for warning in await in_background(lambda: _judged(serving, paths[0], draft, capabilities)):
        tell("warning", warning)
    fit = await in_background(lambda: fit_to_machine(profile, settings.server.threads))
    if fit.batch_limit:
        tell("checking", fit.why)
    return LaunchPlan(
        profile=fit.profile,
        fingerprint=serving.fingerprint,
        model_path=paths[0],
        draft_path=draft,
        threads=settings.server.threads,
        runtime_folder=runtime_folder(),
        log_folder=state_folder() / "logs",
        start_seconds=settings.server.start_seconds,
        command=serving.command or EMBEDDED_COMMAND,
        capabilities=capabilities,
        degraded=serving.degraded,
        draft_limit=serving.draft_limit,
        batch_limit=fit.batch_limit,
        speeds_file=fit.speeds_file,
        states_folder=_states_folder(serving),
    )


def with_profile(hint: str, profile: str) -> str:
    """Commands in a hint, completed with the profile's name so that they can be typed as they are."""
    name = shlex.quote(profile)
    for command in ("agent model pull", "agent model rm"):
        hint = hint.replace(f"`{command}`", f"`{command} {name}`")
    return hint.replace("agent server fit PROFILE", f"agent server fit {name}").replace(
        "--from PROFILE`", f"--from {name}`"
    )


def _located(serving: "Serving", file: ModelFile, progress: Callable[[int, int, str], None]) -> Path:
    """The verified file."""
    from agent.server.download import locate

    settings = serving.loaded.settings
    try:
        return locate(file, settings.models.folder, progress)
    except ModelFileError as error:
        raise ModelFileError(error.message, with_profile(error.hint, settings.profile)) from error


def _judged(
    serving: "Serving", target: Path, draft: Path | None, capabilities: "Capabilities | None"
) -> list[str]:
    """What is not ideal about target and draft. Raises ModelFileError for a pair that cannot work."""
    asked = serving.profile.speculation
    if asked.kind not in KINDS_WITH_A_MODEL:
        return []
    from agent.server.compat import DFLASH_LAYOUTS, check_files

    found = check_files(
        asked.kind,
        target,
        draft,
        n_max=asked.n_max,
        draft_kv_type=asked.draft_kv_type_k or "f16",
        layouts=capabilities.drafter_layouts if capabilities else DFLASH_LAYOUTS,
    )
    for finding in found:
        if finding.severity == "refusal":
            raise ModelFileError(
                f"the draft of profile {serving.profile.name!r} does not fit: {finding.reason}",
                finding.remedy,
            )
    return [f"{finding.reason} ({finding.remedy})" for finding in found]


def _states_folder(serving: "Serving") -> Path | None:
    """Where the server may keep what its slots hold; without it is slower, but no reason not to start."""
    if serving.loaded.settings.server.state_mib == 0:
        return None
    try:
        return make_private_folder(folder_of(states_folder(), serving.fingerprint))
    except OSError:
        return None
