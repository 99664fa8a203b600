"""`agent doctor` from end to end: the checks that only read, then the questions to a running server."""

import asyncio
from collections.abc import Callable

from agent.app.background import in_background
from agent.app.doctor.carded import served_card
from agent.app.doctor.examine import examine, patient_for
from agent.app.doctor.finding import Finding, Outside, Patient, of_error, ok, warning
from agent.app.doctor.live import Live
from agent.app.servers.serving import Serving, choose
from agent.bench.baseline import FILE_NAME, baseline_for, key_of
from agent.config.load import LoadedSettings
from agent.core.errors import AgentError
from agent.core.events import ServerState
from agent.resources import state_folder
from agent.server.probe import is_busy
from agent.server.record import Endpoint


def visit(
    outside: Outside,
    say: Callable[[Finding], None],
    *,
    profile: str = "",
    live: bool = False,
    progress: Callable[[str], None] = lambda text: None,
) -> None:
    """Tells every finding as it comes. Blocks for a few seconds, with a server for up to a minute.

    Args:
        live: also ask a server that has to be started, or that somebody else runs.
        progress: told what is waited for.
    """
    progress("looking at the machine")
    patient = patient_for(outside, profile)
    for finding in examine(patient):
        say(finding)
    if patient.loaded is None or patient.profile is None:
        return
    asyncio.run(_ask_server(patient, patient.loaded, say, live, progress))


async def _ask_server(
    patient: Patient,
    loaded: LoadedSettings,
    say: Callable[[Finding], None],
    live: bool,
    progress: Callable[[str], None],
) -> None:
    try:
        serving = choose(loaded)
        endpoint = await _endpoint(serving, say, live, progress)
        if endpoint is None:
            return
        protocol = await serving.tool_protocol(endpoint)
    except AgentError as error:
        say(of_error("server", error))
        return
    file = state_folder(patient.environment) / FILE_NAME
    look = Live(
        serving=serving, endpoint=endpoint, protocol=protocol, baseline=baseline_for(key_of(endpoint), file)
    )
    for finding in served_card(patient, serving.profile, endpoint.names):
        say(finding)
    progress(f"asking the server at {endpoint.base_url}")
    async for finding in look.examine():
        say(finding)


async def _endpoint(
    serving: Serving, say: Callable[[Finding], None], live: bool, progress: Callable[[str], None]
) -> Endpoint | None:
    """The server to ask; None where none runs, or it should not be disturbed."""
    endpoint = await in_background(serving.running)
    if endpoint is None and not live:
        name = serving.profile.name
        say(ok("live", f"no server of {name} was asked; `agent doctor --live` also asks one"))
        return None
    record = serving.record_of(endpoint) if endpoint else None
    if record is not None and await in_background(lambda: is_busy(record)):
        say(
            warning(
                "live", f"the server of {record.profile} is at work, so it was not asked", "try again later"
            )
        )
        return None

    def show(event: ServerState) -> None:
        progress(f"{event.state}: {event.detail}")

    if endpoint is None:
        endpoint = await serving.endpoint(show)
        if serving.is_managed:
            say(ok("live", f"started the server of {endpoint.profile}; it goes on running"))
    return endpoint
