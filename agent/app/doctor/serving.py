"""Checks of what serves: settings, profile, engine, model files, their fit, records, other servers."""

from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from agent.app.doctor.finding import Finding, Patient, of_error, ok, problem, warning
from agent.app.servers.serving import LOADED_ON_DEMAND
from agent.bench.baseline import FILE_NAME, baseline_for
from agent.config.layers import unknown_variables
from agent.config.load import load_settings
from agent.core.errors import AgentError
from agent.resources import places_of_profiles, runtime_folder, servers_folder, state_folder
from agent.server.binaries import find_binary, installed
from agent.server.caps import Capabilities, read_capabilities
from agent.server.compat import DFLASH_LAYOUTS, check_files
from agent.server.download import status_of_file
from agent.server.engines import ENGINE_TITLES
from agent.server.fingerprint import fingerprint
from agent.server.fit_report import fit_report, shown_size
from agent.server.gguf import read_model
from agent.server.logs import classify, read_tail
from agent.server.loopback import is_free
from agent.server.model_file import ModelFile
from agent.server.profile import KINDS_WITH_A_MODEL, Profile
from agent.server.profile_files import list_profiles, load_profile
from agent.server.record import read_record
from agent.server.remote import describe


def settings(patient: Patient) -> Iterator[Finding]:
    """Whether every layer of the configuration can be read, and its keys are known."""
    try:
        loaded = load_settings(patient.outside.project, patient.environment, {})
    except AgentError as error:
        yield of_error("settings", error)
        return
    for notice in loaded.notices:
        yield warning("settings", notice, "agent trust")
    for name, meant in unknown_variables(patient.environment).items():
        if meant:
            message = f"the variable {name} is no setting of this program and counts for nothing"
            yield warning("variables", message, f"did you mean {meant}?")
    own = sorted({str(origin) for origin in loaded.origins.values() if origin.layer != "default"})
    yield ok(
        "settings",
        f"the settings are readable: {', '.join(own)}" if own else "all settings are at their defaults",
    )


def profile(patient: Patient) -> Iterator[Finding]:
    """Whether the chosen profile is there and valid, and the person's others are."""
    folders = places_of_profiles(patient.environment)
    if patient.loaded is None:
        yield warning(
            "profile", "the profile was not looked at: the settings cannot be read", "correct them first"
        )
    elif patient.profile is None:
        load_profile(patient.loaded.settings.profile, folders)  # says why
    else:
        yield ok(
            "profile",
            f"profile {patient.profile.name}: {patient.profile.description or patient.profile.engine}",
        )
    for found in list_profiles(folders[:1]):
        try:
            load_profile(found.name, folders)
        except AgentError as error:
            if patient.loaded is None or found.name != patient.loaded.settings.profile:
                yield of_error("other-profile", error, "warning")


def engine(patient: Patient) -> Iterator[Finding]:
    """Whether there is a program that serves the profile, and understands what it says."""
    chosen = patient.profile
    if chosen is None:
        return
    if chosen.engine == "embedded":
        if find_spec("xllamacpp") is None:
            yield problem("engine", "the embedded engine is not installed", "agent server install embedded")
        else:
            yield ok("engine", "the embedded engine is installed")
    elif chosen.engine == "llama-server":
        yield from _binary(patient, chosen)
    else:
        yield from _elsewhere(patient, chosen)


def capabilities_of(patient: Patient, chosen: Profile) -> Capabilities:
    """What the program of a profile understands. Raises AgentError where there is none."""
    setting = patient.loaded.settings.server.binary if patient.loaded else ""
    binary = find_binary(chosen, servers_folder(patient.environment), patient.environment, setting)
    return read_capabilities(binary, None, patient.environment)


def _binary(patient: Patient, chosen: Profile) -> Iterator[Finding]:
    from agent.server.argv import Places, command_for

    try:
        found = capabilities_of(patient, chosen)
    except AgentError as error:
        yield of_error("engine", error)
        return
    command = command_for(
        chosen, found, Places(program=found.source, target="target.gguf", draft="draft.gguf")
    )
    for notice in command.refusals:
        remedy = notice.hint or "use another server or profile"
        yield problem("engine", f"{found.name} cannot serve {chosen.name}: {notice.message}", remedy)
    for notice in command.warnings:
        yield warning("engine", notice.message, notice.hint or "see `agent server command`")
    if not command.refusals:
        dialect = "" if chosen.dialect in (None, found.dialect) else f", the profile is for {chosen.dialect}"
        yield ok("engine", f"{found.name}{dialect}")


def _elsewhere(patient: Patient, chosen: Profile) -> Iterator[Finding]:
    url = (chosen.url or "").rstrip("/").removesuffix("/v1")
    server = (
        patient.loaded.settings.server if patient.loaded else None
    )  # what it says goes before the profile
    variable = (server.api_key_env if server else "") or chosen.api_key_env or ""
    key = patient.environment.get(variable, "").strip()
    if variable and not key:
        yield problem(
            "engine", f"the variable {variable}, which holds the server's key, is not set", f"set {variable}"
        )
        return
    try:
        offer = describe(url, key, (server.model if server else "") or chosen.model or "")
    except AgentError as error:
        yield of_error("engine", error)
        return
    title = next((name for kind, name in ENGINE_TITLES.items() if kind == offer.engine), offer.engine)
    context = f", context {offer.context_tokens} tokens" if offer.context_tokens else ""
    yield ok("engine", f"{title} answers at {url}{context}")
    told = "context" in chosen.model_fields_set or (patient.loaded and patient.loaded.settings.server.context)
    if not (offer.context_tokens or told or offer.engine in LOADED_ON_DEMAND):
        yield problem(
            "window",
            f"{title} does not say how much context the model gets, so no conversation begins",
            "set server.context, or context in the profile",
        )


def model_files(patient: Patient) -> Iterator[Finding]:
    """Whether the files are there, of the right size, and readable as models."""
    chosen = patient.profile
    if chosen is None or patient.loaded is None:
        return
    folder = patient.loaded.settings.models.folder
    for file in chosen.model_files:
        yield _file(file, folder, chosen.name)
    for part in sorted(folder.glob("*.part")) if folder.is_dir() else ():
        wanted = {f"{Path(file.file).name}.part" for file in chosen.model_files}
        if part.name not in wanted:
            size = shown_size(part.stat().st_size)
            yield warning("partial", f"{part.name} is half a download ({size})", f"finish it, or rm {part}")


def _file(file: ModelFile, folder: Path, profile_name: str) -> Finding:
    path = file.found_in(folder)
    status = status_of_file(file, folder)
    pull = f"agent model pull {profile_name}"
    if path is None:
        if status.state == "partial":
            return problem(
                "model-file", f"{file.file} is downloaded in part ({shown_size(status.bytes)})", pull
            )
        by_hand = all(source.kind == "file" for source in file.sources)
        remedy = f"put it into {folder}" if by_hand else pull
        return problem("model-file", f"{file.file} is not in {folder}", remedy)
    if status.state == "wrong":
        message = f"{path} has {status.bytes} bytes, and {file.bytes} are expected"
        if status.bytes == file.bytes:
            message = f"{path} has another sha256 than the profile names"
        if path.parent != folder:
            return problem("model-file", message, f"put the right file there, or into {folder}")
        return problem("model-file", message, f"agent model rm {profile_name}, then {pull}")
    try:
        read_model(path)
    except AgentError as error:
        return of_error("model-file", error)
    size = shown_size(path.stat().st_size)
    if status.state == "unverified":
        return ok("model-file", f"{path.name}, {size}; its sha256 is compared at the next start")
    known = "its sha256 was compared" if file.sha256 else "the profile names no sha256 to compare"
    return ok("model-file", f"{path.name}, {size}; {known}")


def pair(patient: Patient) -> Iterator[Finding]:
    """Whether the draft belongs to its target."""
    chosen = patient.profile
    if chosen is None or patient.loaded is None or chosen.speculation.kind not in KINDS_WITH_A_MODEL:
        return
    paths = [file.found_in(patient.loaded.settings.models.folder) for file in chosen.model_files]
    if not paths or None in paths:
        return
    layouts = DFLASH_LAYOUTS
    if chosen.engine == "llama-server":
        try:
            layouts = capabilities_of(patient, chosen).drafter_layouts
        except AgentError:
            layouts = DFLASH_LAYOUTS
    speculation = chosen.speculation
    there = [path for path in paths if path is not None]
    found = check_files(
        speculation.kind,
        there[0],
        there[1] if len(there) > 1 else None,
        n_max=speculation.n_max,
        draft_kv_type=speculation.draft_kv_type_k or "f16",
        layouts=layouts,
    )
    for one in found:
        level = "problem" if one.severity == "refusal" else "warning"
        yield Finding(level, "draft", one.reason, one.remedy)
    if not found:
        yield ok("draft", f"target and draft belong together ({speculation.kind})")


def fit(patient: Patient) -> Iterator[Finding]:
    """Whether it fits into what is free now."""
    chosen = patient.profile
    if chosen is None or patient.loaded is None or chosen.target is None or chosen.engine == "remote":
        return
    if patient.own_record() is not None:
        yield ok("fit", "the server of the profile runs, so it fits")
        return
    folder = patient.loaded.settings.models.folder
    if any(file.found_in(folder) is None for file in chosen.model_files):
        return
    report = fit_report(_for_the_program(patient, chosen), folder, patient.hardware)
    place = "on the GPU" if report.need.gpu else "in RAM"
    left = shown_size(abs(report.left))
    if report.verdict == "too big":
        first = next((one.change for one in report.suggestions if one.fits), "")
        remedy = f"{first}; all that would help: " if first else ""
        yield problem(
            "fit",
            f"{chosen.name} does not fit: {left} are missing",
            f"{remedy}`agent server fit {chosen.name}`",
        )
    elif report.verdict in ("tight", "partly"):
        message = f"{chosen.name} fits {'tightly' if report.verdict == 'tight' else 'only in part'} {place}"
        yield warning("fit", message, f"see `agent server fit {chosen.name}`")
    else:
        yield ok("fit", f"fits: {left} would be left {place}")


def _for_the_program(patient: Patient, chosen: Profile) -> Profile:
    """With the dialect of the llama-server that is there: how much a drafter keeps depends on it."""
    if chosen.engine == "llama-server":
        with suppress(AgentError):
            return chosen.model_copy(update={"dialect": capabilities_of(patient, chosen).dialect})
    return chosen


def records(patient: Patient) -> Iterator[Finding]:
    """Servers that were started here: what is left of them, and what is wrong with them."""
    folder = runtime_folder(patient.environment)
    unreadable = (
        [path for path in sorted(folder.glob("server-*.record.json")) if read_record(path) is None]
        if folder.is_dir()
        else []
    )
    for path in unreadable:
        yield warning("record", f"{path} cannot be read", f"rm {path}")
    for record in patient.records:
        stop = f"agent server stop {record.profile}"
        if not record.is_running:
            failure = classify(read_tail(Path(record.log_file)), None)
            message = (
                f"the server of {record.profile} has ended and left its record behind: {failure.summary}"
            )
            yield warning("record", message, f"{stop}; its log: {record.log_file}")
        elif record.state == "ready" and not record.is_healthy:
            message = f"the server of {record.profile} (process {record.pid}) does not answer"
            yield problem("record", message, f"agent server logs {record.profile}, then {stop}")
        else:
            yield ok("record", f"{record.profile} runs at {record.base_url}, state {record.state}")
        for one in record.findings if record.is_running else ():
            if one.get("level") in ("warning", "error"):
                level = "problem" if one["level"] == "error" else "warning"
                yield Finding(level, "server", one.get("message", ""), one.get("hint", ""))


def port(patient: Patient) -> Iterator[Finding]:
    """Whether somebody else sits on the port of the profile."""
    chosen = patient.profile
    if chosen is None or chosen.engine != "llama-server" or not chosen.port:
        return
    if is_free(chosen.port):
        yield ok("port", f"port {chosen.port} is free")
        return
    own = next((one for one in patient.records if one.port == chosen.port and one.is_running), None)
    if own is not None:
        yield ok("port", f"port {chosen.port} is used by the server of {own.profile}")
        return
    other = next((one for one in patient.running if one.base_url.endswith(f":{chosen.port}")), None)
    who = f"{other.title} that was not started here" if other else "another program"
    yield problem(
        "port", f"port {chosen.port} of profile {chosen.name!r} is taken by {who}", "end it, or change port"
    )


def other_servers(patient: Patient) -> Iterator[Finding]:
    """Model servers of others on the usual ports: they can be used, and take memory."""
    own = tuple(f":{record.port}" for record in patient.records if record.is_running)
    for facts in patient.running:
        if own and facts.base_url.endswith(own):
            continue
        model = f", serving {facts.model.id}" if facts.model else ""
        use = (
            "it wants a key: a profile with its url and api_key_env uses it"
            if facts.needs_key
            else "`agent setup` can use it"
        )
        yield ok("other-server", f"{facts.title} runs at {facts.base_url}{model}; {use}")


def speed(patient: Patient) -> Iterator[Finding]:
    """Whether it is known how fast the profile is here."""
    chosen, loaded = patient.profile, patient.loaded
    if chosen is None or loaded is None:
        return
    server = loaded.settings.server
    mark = fingerprint(chosen, loaded.settings.models.folder, server.threads, server.binary)
    if chosen.engine not in ("embedded", "llama-server"):
        mark = f"url:{(chosen.url or '').rstrip('/').removesuffix('/v1')}"
    known = baseline_for(mark, state_folder(patient.environment) / FILE_NAME)
    if known is None:
        yield warning(
            "baseline", f"the speed of {chosen.name} was never measured here", f"agent bench {chosen.name}"
        )
    else:
        yield ok("baseline", f"measured here: {known.decode_rate:.1f} tok/s on {known.measured_at[:10]}")


def installations(patient: Patient) -> Iterator[Finding]:
    """Installed servers, as far as they are worth a line."""
    there = installed(servers_folder(patient.environment))
    if there:
        yield ok("installed", "installed: " + ", ".join(f"{one.key} ({one.dialect})" for one in there))
