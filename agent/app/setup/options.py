"""Makes an option of a profile or of a server that runs: what is there, what is missing, does it fit."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from agent.app.setup.look import Surroundings
from agent.app.setup.option import Build, Fit, NeededFile, Obstacle, Option
from agent.app.setup.sizes import rough_need, size_of
from agent.app.setup.speed import Speed, expected_speed, measured_speed
from agent.bench.baseline import FILE_NAME, Baseline, baseline_for
from agent.core.errors import AgentError
from agent.resources import state_folder
from agent.server.binaries import find_binary
from agent.server.download import status_of_file
from agent.server.engine_extra import Environment, command_for
from agent.server.engines import EngineFacts
from agent.server.fingerprint import fingerprint
from agent.server.fit_report import FitReport, fit_report
from agent.server.install import Wish, Workplace, make_plan, release_for
from agent.server.model_file import ModelFile
from agent.server.profile import DialectName, Profile
from agent.server.toolchain import System

_WISHES: dict[DialectName | None, Wish] = {
    "bee-0.3": Wish(name="beellama"),
    "bee-0.4": Wish(name="beellama", version="0.4"),
    "llama.cpp": Wish(name="llama.cpp"),
    None: Wish(name="llama.cpp"),
}
_CORE_MINUTES = {
    "cpu": (15, 40), "metal": (20, 50), "vulkan": (40, 100), "rocm": (100, 300), "cuda": (150, 400),
}  # fmt: skip
"""Minutes of one compiler; the processor's was measured, the others are guesses on the safe side."""
_TREE_BYTES = {
    "cpu": 700_000_000, "metal": 900_000_000, "vulkan": 1_500_000_000, "rocm": 5_000_000_000,
    "cuda": 6_000_000_000,
}  # fmt: skip
_TIGHT_SHARE = 0.05
_SPARE_DISK_BYTES = 500_000_000


def local_option(profile: Profile, found: Surroundings, why: str = "") -> Option:
    """The option of a profile whose server is started here."""
    files = tuple(
        _needed(file, found, is_drafter=is_drafter(profile, number))
        for number, file in enumerate(profile.model_files)
    )
    sizes = [
        _size_there(wanted, needed, found) or size_of(wanted, is_drafter=is_drafter(profile, number)).bytes
        for number, (wanted, needed) in enumerate(zip(profile.model_files, files, strict=True))
    ]
    program, build, obstacles = _engine(profile, found)
    on_gpu = bool(found.hardware.gpus) and profile.engine != "embedded"
    fit, need, rough = _fit(profile, sizes, found, on_gpu)
    option = Option(
        profile=profile.name,
        title=profile.description or "",
        engine=profile.engine,
        program=program,
        fit=fit,
        need=need,
        need_is_rough=rough,
        room=found.hardware.vram_free if on_gpu else found.hardware.ram_available,
        on_gpu=on_gpu,
        files=files,
        build=build,
        speed=expected_speed(
            profile, sizes[0] if sizes else 0, found.hardware, gpu=on_gpu, baseline=_baseline(profile, found)
        ),
        why=why,
    )
    obstacles += _file_obstacles(option, found)
    if fit == "too big":
        obstacles.append(_too_big(option))
    obstacles += _disk_obstacles(option, found)
    return _with(option, obstacles)


def elsewhere_option(profile: Profile, found: Surroundings, why: str) -> Option:
    """The option of a profile whose server somebody else runs."""
    base = (profile.url or "").rstrip("/").removesuffix("/v1")
    silent = found.silence(base)
    hint = "start it, or choose another profile with `agent setup --profile NAME`"
    return Option(
        profile=profile.name,
        title=profile.description or f"the server at {base}",
        engine="remote",
        program=f"the server at {base}",
        url=profile.url or "",
        model=profile.model or "",
        fit="runs elsewhere",
        speed=measured_at(base, found),
        obstacles=(Obstacle(silent, hint),) if silent else (),
        why=why,
    )


def measured_at(base_url: str, found: Surroundings) -> Speed | None:
    """What was measured of a server of somebody else."""
    baseline = baseline_for(f"url:{base_url}", state_folder(found.environment) / FILE_NAME)
    return measured_speed(baseline) if baseline else None


def running_option(facts: EngineFacts, profile_name: str, speed: Speed | None = None) -> Option | None:
    """The option of a server that runs already; None where it has no model, or lets nobody in."""
    if facts.needs_key or facts.is_router or facts.is_loading:
        return None
    model = facts.model or next((one for one in facts.models if "coder" in one.id.lower()), None)
    model = model or (facts.models[0] if facts.models else None)
    if model is None:
        return None
    named = facts.engine != "llama-server"
    notes = []
    if named and len(facts.models) > 1 and facts.model is None:
        notes.append(f"it has {len(facts.models)} models; another one is chosen by `model` in the profile")
    if not facts.context_tokens:
        notes.append("it does not say how much context it gives: set context in the profile that is written")
    return Option(
        profile=profile_name,
        title=f"{facts.title} at {facts.base_url}, serving {model.id}",
        engine="remote",
        program=facts.title,
        url=facts.base_url,
        model=model.id if named else "",
        fit="runs elsewhere",
        speed=speed,
        notes=tuple(notes),
        why="it runs already: nothing to download, nothing to build",
    )


def is_drafter(profile: Profile, number: int) -> bool:
    """Whether the file with this number is named after its target, not after its own size."""
    return number > 0 and profile.speculation.kind not in ("draft", "mtp")


def _with(option: Option, obstacles: list[Obstacle]) -> Option:
    return replace(option, obstacles=tuple(obstacles))


def _needed(file: ModelFile, found: Surroundings, *, is_drafter: bool) -> NeededFile:
    name = Path(file.file).name
    status = status_of_file(file, found.models_folder)
    if status.state in ("ready", "unverified"):
        return NeededFile(name=name, state="there")
    elsewhere = next((path for path in found.models_elsewhere if _is_the_same(path, file)), None)
    if status.state != "wrong" and elsewhere is not None:
        return NeededFile(name=name, state="elsewhere", found=elsewhere)
    size = size_of(file, is_drafter=is_drafter)
    allowed = found.loaded.settings.models.sources
    can_fetch = any(source.kind in allowed for source in file.sources)
    left = max(0, size.bytes - status.bytes) if status.state == "partial" else size.bytes
    return NeededFile(
        name=name, state="download" if can_fetch else "by hand", bytes=left, is_guess=size.is_guess
    )


def _is_the_same(path: Path, file: ModelFile) -> bool:
    """By name, and by size where the profile knows it; the checksum is looked at before it is used."""
    if path.name != Path(file.file).name:
        return False
    with suppress(OSError):
        return file.bytes in (None, path.stat().st_size)
    return False


def _size_there(wanted: ModelFile, needed: NeededFile, found: Surroundings) -> int:
    path = needed.found or wanted.path_in(found.models_folder)
    with suppress(OSError):
        return path.stat().st_size if needed.state in ("there", "elsewhere") else 0
    return 0


def _engine(profile: Profile, found: Surroundings) -> tuple[str, Build | None, list[Obstacle]]:
    """What serves the profile, what has to be built for that, and what is in the way."""
    if profile.engine == "embedded":
        if found.engine:
            return f"embedded engine (xllamacpp {found.engine})", None, []
        build, obstacles = engine_build(Environment())
        return "embedded engine", build, obstacles
    with suppress(AgentError):
        setting = found.loaded.settings.server.binary
        binary = find_binary(profile, found.servers_folder, found.environment, setting)
        known = next((one for one in found.installed if one.path == binary), None)
        program = f"{known.key}{f', {known.backend}' if known.backend else ''}" if known else str(binary)
        return program, None, []
    place = Workplace(
        servers_folder=found.servers_folder,
        work_folder=found.cache_folder / "builds",
        system=System(environment=found.environment),
        hardware=lambda _folder: found.hardware,
    )
    build, obstacles = server_build(profile.dialect, place)
    return build.what if build else "llama-server", build, obstacles


def engine_build(place: Environment) -> tuple[Build, list[Obstacle]]:
    """The installation of the embedded engine, and what is in its way."""
    build = Build(what="the embedded engine", label="a wheel, from the package index", bytes=150_000_000)
    try:
        command_for(place)
    except AgentError as error:
        return build, [Obstacle(error.message, error.hint)]
    return build, []


def server_build(dialect: DialectName | None, place: Workplace) -> tuple[Build | None, list[Obstacle]]:
    """The build of a llama-server of that dialect, and what is in its way; None where there is no recipe."""
    wish = _WISHES.get(dialect)
    if wish is None:
        hint = "build it, and set server.binary to its path"
        return None, [Obstacle(f"there is no recipe for a server of the dialect {dialect}", hint)]
    release = release_for(wish)
    try:
        plan = make_plan(wish, release, place)
    except AgentError as error:
        return Build(what=release.key, label="", wish=wish), [Obstacle(error.message, error.hint)]
    low, high = _CORE_MINUTES[plan.tools.backend]
    build = Build(
        what=release.key,
        label=f"for {plan.tools.label}, {plan.jobs} compiler{'s' if plan.jobs > 1 else ''} at a time",
        wish=wish,
        low_minutes=low / plan.jobs,
        high_minutes=high / plan.jobs,
        bytes=_TREE_BYTES[plan.tools.backend],
    )
    return build, []


def _fit(profile: Profile, sizes: list[int], found: Surroundings, on_gpu: bool) -> tuple[Fit, int, bool]:
    """The verdict, the memory it needs, and whether that is only a rule of thumb."""
    if profile.name in found.own_servers:
        return "fits", 0, False  # it runs, and what it takes is no longer free
    report = _exact_fit(profile, found)
    if report is not None:
        return report.verdict, report.need.gpu if on_gpu else report.need.ram, False
    need = rough_need(profile, sizes)
    hardware = found.hardware
    room = hardware.vram_free if on_gpu else hardware.ram_available
    if not need or not room:
        return "not known", need, True
    if need > room:
        return "too big", need, True
    return "tight" if need > room * (1 - _TIGHT_SHARE) else "fits", need, True


def _exact_fit(profile: Profile, found: Surroundings) -> FitReport | None:
    """By the headers of the files; None while one of them is missing or cannot be read."""
    with suppress(AgentError):
        return fit_report(profile, found.models_folder, found.hardware)
    return None


def _baseline(profile: Profile, found: Surroundings) -> Baseline | None:
    settings = found.loaded.settings
    mark = fingerprint(profile, settings.models.folder, settings.server.threads, settings.server.binary)
    return baseline_for(mark, state_folder(found.environment) / FILE_NAME)


def _too_big(option: Option) -> Obstacle:
    where = "the GPU" if option.on_gpu else "memory"
    rough = "about " if option.need_is_rough else ""
    message = f"it needs {rough}{option.need / 1e9:.1f} GB of {where}, {option.room / 1e9:.1f} GB are free"
    return Obstacle(message, f"end other programs, or see `agent server fit {option.profile}`", "memory")


def _file_obstacles(option: Option, found: Surroundings) -> list[Obstacle]:
    missing = [file.name for file in option.files if file.state == "by hand"]
    if not missing:
        return []
    names = " and ".join(missing)
    hint = f"put it into {found.models_folder}, then `agent setup --profile {option.profile}`"
    return [Obstacle(f"you have to supply {names}: its profile knows no source for it", hint, "file")]


def _disk_obstacles(option: Option, found: Surroundings) -> list[Obstacle]:
    models, builds = found.models_folder, found.cache_folder
    more = option.build.bytes if option.build and _same_disk(models, builds) else 0
    needed, free = option.download_bytes + more, found.hardware.disk_free
    if not needed or free is None or free >= needed + _SPARE_DISK_BYTES:
        return []
    message = (
        f"the disk of {models} is too full: {needed / 1e9:.1f} GB are needed, {free / 1e9:.1f} GB are free"
    )
    return [Obstacle(message, "make room, or set models.folder to a folder on another disk", "disk")]


def _same_disk(one: Path, other: Path) -> bool:
    def device(folder: Path) -> int | None:
        for there in (folder.absolute(), *folder.absolute().parents):
            with suppress(OSError):
                return there.stat().st_dev
        return None

    return device(one) == device(other)
