"""Whether there is memory for a server, looked at right before it is started.

A GPU that is too small ends a server after minutes of loading, or in the middle of a turn. Weights and
context are known to within a few per cent, so that a server is not started where these alone are more than is
free. The buffers beside them are estimated (`agent.server.fit`): where only they are too much, it is tried.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent.core.errors import AgentError
from agent.server.fit_report import FitReport, fit_report, shown_size
from agent.server.hardware import Hardware, detect_hardware
from agent.server.launch import LaunchPlan

Look = Callable[[Path], Hardware]
_SURE = ("weights", "kv", "recurrent", "draft weights", "draft kv")


@dataclass(frozen=True, slots=True)
class Shortage:
    """What is missing. `is_certain`: it cannot be loaded, whatever the buffers really take."""

    message: str
    hint: str
    is_certain: bool


def shortage(plan: LaunchPlan, look: Look = detect_hardware) -> Shortage | None:
    """What of the memory is missing for a server that is not there yet; None where it fits or nobody can say.

    Args:
        look: gives the hardware, with the memory that is free now.
    """
    profile = plan.profile
    if profile.extra_args:
        return None  # they may say where parts of the model go, of which the estimate knows nothing
    try:
        report = _report(plan, look(plan.model_path.parent))
    except (AgentError, ArithmeticError, LookupError, TypeError, ValueError):
        # The server itself says best what is wrong with a file, and it may know more kinds than this program.
        return None
    if report.need.gpu > report.budget.gpu:
        return None if profile.gpu_layers == "auto" else _on_the_gpu(report)
    in_ram = report.need.ram + (report.need.gpu if report.budget.unified else 0)
    if in_ram <= report.budget.ram:
        return None
    needed, free = shown_size(in_ram), shown_size(report.budget.ram)
    message = f"profile {profile.name!r} needs about {needed} of memory, and {free} are free"
    return Shortage(message, _hint(report), is_certain=False)


def _report(plan: LaunchPlan, hardware: Hardware) -> FitReport:
    profile = plan.profile
    if plan.capabilities is not None:
        # How much a draft model keeps depends on the program, not on what the profile was written for.
        profile = profile.model_copy(update={"dialect": plan.capabilities.dialect})
    files = zip(profile.model_files, (plan.model_path, plan.draft_path), strict=False)
    paths = {file.file: path for file, path in files if path is not None}
    return fit_report(profile, plan.model_path.parent, hardware, headers=paths)


def _on_the_gpu(report: FitReport) -> Shortage:
    rows = [row for row in report.need.rows if row.gpu and row.part in _SURE]
    sure, free = sum(row.gpu for row in rows), report.budget.gpu
    if sure <= free:
        needed = f"about {shown_size(report.need.gpu)} on the GPU"
        message = f"profile {report.profile!r} needs {needed}, and {shown_size(free)} are free"
        return Shortage(message, _hint(report), is_certain=False)
    parts = "; ".join(f"{row.label} {shown_size(row.gpu)}" for row in rows)
    message = (
        f"profile {report.profile!r} does not fit on the GPU: {shown_size(sure)} for {parts}, "
        f"and {shown_size(free)} are free"
    )
    return Shortage(message, _hint(report), is_certain=True)


def _hint(report: FitReport) -> str:
    change = next((one.change for one in report.suggestions if one.fits), "")
    whole = f"`agent server fit {report.profile}` shows the whole"
    return f"set {change} in the profile, or end what uses the memory; {whole}" if change else whole
