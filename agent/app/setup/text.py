"""A proposal as text for a person, and as JSON for programs."""

import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from agent.app.setup.look import Surroundings
from agent.app.setup.option import Build, NeededFile, Option
from agent.app.setup.proposal import Proposal
from agent.server.fit_report import shown_size
from agent.server.hardware import Hardware

_LABEL_WIDTH = 12
_MOST_NAMES = 4


def render(proposal: Proposal, writes: Sequence[str]) -> str:
    """The whole proposal.

    Args:
        writes: what will be written into the settings, one line each.
    """
    option = proposal.option
    lines = ["This machine", *_machine(proposal.found), ""]
    lines += [f"Proposal: {option.profile}", f"  {option.title}".rstrip(), *_rows(_facts(option))]
    lines += [f"  note: {note}" for note in option.notes]
    if option.is_usable:
        lines += _rows([("then", _afterwards(option)), *(("writes", line) for line in writes)])
    for obstacle in option.obstacles:
        lines += ["", f"This is in the way: {obstacle.message}", f"hint: {obstacle.hint}"]
    if proposal.alternatives:
        lines += ["", "Alternatives (agent setup --profile NAME)"]
        for number, one in enumerate(proposal.alternatives, start=1):
            lines += [f"  {number}. {one.profile}: {one.title}", f"     {summary(one)}"]
    lines += ["", *(f"note: {note}" for note in proposal.notes)] if proposal.notes else []
    return "\n".join(lines) + "\n"


def summary(option: Option) -> str:
    """An option in one line: what it takes, how fast it may be, what is in the way."""
    parts = []
    if not option.runs_elsewhere:
        parts.append(f"download {_amount(option)}" if _to_fetch(option) else "no download")
        if option.build:
            parts.append(f"installs {option.build.what}{_minutes(option.build)}")
        parts.append(_fit(option))
    if option.speed:
        parts.append(option.speed.in_short)
    parts += [f"needs: {obstacle.message}" for obstacle in option.obstacles if obstacle.kind != "memory"]
    return "; ".join(parts) or option.why


def in_two_lines(option: Option) -> str:
    """What is agreed to, for right above the question: what it is, and what it takes."""
    return f"{option.profile} with {option.program}\n  {summary(option)}\n"


def hanging_indent(line: str) -> int:
    """Under which column of `line`, one of `render`, the rest of it goes on where it is too long."""
    text_begins = 2 + _LABEL_WIDTH
    is_row = line.startswith("  ") and line[text_begins - 2 : text_begins] == "  "
    if is_row:
        return text_begins
    if re.match(r"  \d\. ", line):
        return len("  1. ")
    return max(2, len(line) - len(line.lstrip()))


def as_json(proposal: Proposal, writes: Sequence[str]) -> dict[str, Any]:
    """Everything of the proposal. Sizes are bytes, speeds tokens per second."""
    found = proposal.found
    return {
        "machine": asdict(found.hardware),
        "servers": [one.key for one in found.installed],
        "embedded_engine": found.engine,
        "running": [
            {"url": one.base_url, "engine": one.engine, "models": [model.id for model in one.models]}
            for one in found.running
        ],
        "model_files": [str(path) for path in found.models],
        "proposal": _option_json(proposal.option),
        "writes": list(writes),
        "alternatives": [_option_json(one) for one in proposal.alternatives],
        "notes": list(proposal.notes),
    }


def _option_json(option: Option) -> dict[str, Any]:
    table = asdict(option)
    if option.build:
        table["build"] = {key: value for key, value in table["build"].items() if key != "wish"}
    for file in table["files"]:
        file["found"] = str(file["found"]) if file["found"] else None
    return {
        **table,
        "is_usable": option.is_usable,
        "download_bytes": option.download_bytes,
        "disk_bytes": option.disk_bytes,
    }


def _machine(found: Surroundings) -> list[str]:
    hardware = found.hardware
    servers = [f"{one.key}{f' ({one.backend})' if one.backend else ''}" for one in found.installed]
    servers += [f"embedded engine {found.engine}"] if found.engine else []
    running = [f"{one.title} at {one.base_url}" for one in found.running]
    running += [f"{name} (started by agent)" for name in found.own_servers]
    rows = [
        ("processor", f"{hardware.cpu}, {hardware.physical_cores} cores"),
        ("memory", f"{shown_size(hardware.ram_total)}, {shown_size(hardware.ram_available)} available"),
        ("graphics", _graphics(hardware)),
        ("disk", f"{_gigabytes(hardware.disk_free)} free for {found.models_folder}"),
        ("installed", _some(servers) or "no model server"),
        ("running", _some(running) or "no model server on the usual ports"),
        ("models", _some([path.name for path in found.models]) or "no model files yet"),
    ]
    if found.models_elsewhere:
        rows.append(("", f"{len(found.models_elsewhere)} GGUF files of other programs"))
    return _rows(rows)


def _graphics(hardware: Hardware) -> str:
    return (
        "; ".join(
            f"{gpu.name}, {shown_size(gpu.total_bytes)}, {shown_size(gpu.free_bytes)} free"
            + (" (shared with the processor)" if gpu.unified else "")
            for gpu in hardware.gpus
        )
        or "none found; models run on the processor"
    )


def _facts(option: Option) -> list[tuple[str, str]]:
    rows = [("why", option.why)] if option.why else []
    rows.append(
        ("server", option.program + (f", to be installed: {_built(option.build)}" if option.build else ""))
    )
    if not option.runs_elsewhere:
        rows.append(("memory", _fit(option)))
        rows += [
            ("model file" if number == 0 else "", _file(file)) for number, file in enumerate(option.files)
        ]
        rows.append(("download", _amount(option) if _to_fetch(option) else "nothing"))
        if option.disk_bytes:
            build = " (with what the build needs for its time)" if option.build else ""
            rows.append(("disk", f"{_gigabytes(option.disk_bytes)} needed{build}"))
    elif option.model:
        rows.append(("model", option.model))
    rows.append(("speed", str(option.speed) if option.speed else "not known before it is measured"))
    return rows


def _built(build: Build) -> str:
    return f"{build.label or 'see below'}{_minutes(build)}"


def _minutes(build: Build) -> str:
    if not build.high_minutes:
        return ""
    return f", about {max(1, build.low_minutes):.0f} to {max(2, build.high_minutes):.0f} minutes"


def _fit(option: Option) -> str:
    place = "GPU memory" if option.on_gpu else "memory"
    if not option.need:
        return "runs now" if option.fit == "fits" else f"what it takes of {place} is not known yet"
    rough = "about " if option.need_is_rough else ""
    words = {"fits": "fits", "tight": "fits, tightly", "partly": "fits in part", "too big": "does not fit"}
    verdict = words.get(option.fit, "fit not known")
    rule = ", by file size" if option.need_is_rough else ""
    return f"{verdict}: {rough}{shown_size(option.need)} of {shown_size(option.room)} free {place}{rule}"


def _file(file: NeededFile) -> str:
    if file.state == "there":
        return f"{file.name}: there"
    if file.state == "elsewhere":
        return f"{file.name}: found as {file.found}; linked, not copied"
    if file.state == "by hand":
        return f"{file.name}: you have to supply it"
    about = "about " if file.is_guess else ""
    return (
        f"{file.name}: {about}{_gigabytes(file.bytes)} to download"
        if file.bytes
        else f"{file.name}: to download"
    )


def _to_fetch(option: Option) -> list[NeededFile]:
    return [file for file in option.files if file.state == "download"]


def _amount(option: Option) -> str:
    files = _to_fetch(option)
    if not all(file.bytes for file in files):
        return "of unknown size"
    about = "about " if any(file.is_guess for file in files) else ""
    return f"{about}{_gigabytes(option.download_bytes)}"


def _afterwards(option: Option) -> str:
    if option.runs_elsewhere:
        return "asks it a few questions to measure it, and never stops it"
    return "starts it, and measures it for a moment"


def _gigabytes(count: int | None) -> str:
    if count is None:
        return "an unknown amount"
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def _some(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _rows(rows: Sequence[tuple[str, str]]) -> list[str]:
    return [f"  {label:<{_LABEL_WIDTH}}{text}".rstrip() for label, text in rows]
