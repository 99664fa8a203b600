"""Checks of the machine and of the person's surroundings: Python, tools, terminal, folders, GPU, disk."""

import os
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path

from agent.app.doctor.finding import Finding, Patient, ok, problem, warning
from agent.resources import cache_folder, config_folder, data_folder, state_folder
from agent.server.hardware import free_space
from agent.server.toolchain import System as BuildSystem
from agent.server.toolchain import choose_backend, find_toolchain

_DISTRIBUTION = "dflash-agent"
_OLDEST_PYTHON = (3, 11)
_LITTLE_STATE_BYTES = 200_000_000
_LITTLE_MODEL_BYTES = 5_000_000_000
_COLUMNS, _ROWS = 80, 24
_SHIELDED = ("LLAMA_ARG_", "LLAMA_API_KEY")


def python_and_packages(patient: Patient) -> Iterator[Finding]:
    """Whether the interpreter and what has to be installed beside this program are new enough."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < _OLDEST_PYTHON:
        yield problem("python", f"Python {version} is too old", "install Python 3.11 or newer")
    try:
        needs = metadata.requires(_DISTRIBUTION) or []
        own = metadata.version(_DISTRIBUTION)
    except metadata.PackageNotFoundError:
        yield ok("python", f"Python {version}; runs from a checkout, so its packages are not compared")
        return
    wrong = [found for need in needs if "extra ==" not in need and (found := _lacking(need))]
    for text in wrong:
        remedy = f"{sys.executable} -m pip install --upgrade {_DISTRIBUTION}"
        yield problem("packages", text, remedy)
    if not wrong:
        yield ok("python", f"Python {version}, {_DISTRIBUTION} {own}, all packages are there")


def _lacking(need: str) -> str:
    """What is wrong with a package that is needed, empty if nothing. Only lower bounds are compared."""
    try:
        from packaging.requirements import InvalidRequirement, Requirement
    except ImportError:
        return ""  # comes with other packages, and nobody promises that
    try:
        requirement = Requirement(need)
    except InvalidRequirement:
        return ""
    if requirement.marker is not None and not requirement.marker.evaluate():
        return ""
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return f"the package {requirement.name} is not installed"
    if requirement.specifier.contains(version, prereleases=True):
        return ""
    return f"{requirement.name} {version} is installed, {requirement.specifier} is needed"


def tools(patient: Patient) -> Iterator[Finding]:
    """Programs that are used where they are there."""
    path = patient.environment.get("PATH", "")
    if shutil.which("git", path=path):
        yield ok("git", "git is there")
    else:
        yield warning("git", "git is not installed: no branch, no commit, no view of changes", "install git")
    if shutil.which("rg", path=path):
        yield ok("ripgrep", "ripgrep is there")
    else:
        yield warning(
            "ripgrep", "ripgrep (rg) is not installed: searching large folders is slow", "install ripgrep"
        )


def terminal(patient: Patient) -> Iterator[Finding]:
    """What the terminal can show."""
    environment = patient.environment
    if not sys.stdout.isatty():
        yield ok("terminal", "the output is no terminal, so its abilities are not looked at")
        return
    size = shutil.get_terminal_size()
    kind = environment.get("TERM", "")
    colours = _colours(environment)
    if kind in ("", "dumb"):
        yield warning(
            "terminal", f"TERM is {kind or 'not set'}: the interface cannot draw", "use `agent --plain`"
        )
    if size.columns < _COLUMNS or size.lines < _ROWS:
        yield warning(
            "terminal-size",
            f"the terminal has {size.columns} x {size.lines} characters, and 80 x 24 are good to have",
            "make the window larger, or use `agent --plain`",
        )
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    if encoding != "utf8":
        yield warning("encoding", f"the terminal is written to as {encoding}", "set LANG to a UTF-8 locale")
    yield ok("terminal", f"{kind or 'terminal'}, {size.columns} x {size.lines}, {colours}")


def _colours(environment: Mapping[str, str]) -> str:
    if environment.get("NO_COLOR"):
        return "no colours (NO_COLOR is set)"
    if environment.get("COLORTERM") in ("truecolor", "24bit"):
        return "16 million colours"
    return "256 colours" if "256" in environment.get("TERM", "") else "16 colours"


def folders(patient: Patient) -> Iterator[Finding]:
    """Whether the person's folders can be written, and the one with conversations and keys is private."""
    environment = patient.environment
    all_of_them = {
        "state": state_folder(environment),
        "config": config_folder(environment),
        "data": data_folder(environment),
        "cache": cache_folder(environment),
    }
    wrong = False
    for name, folder in all_of_them.items():
        for finding in _folder(name, folder, private=name == "state"):
            wrong = True
            yield finding
    if not wrong:
        yield ok(
            "folders",
            f"state in {all_of_them['state']}, settings in {all_of_them['config']}, "
            f"data in {all_of_them['data']}",
        )


def _folder(name: str, folder: Path, *, private: bool) -> Iterator[Finding]:
    there = next((one for one in (folder, *folder.parents) if one.exists()), Path("/"))
    if not there.is_dir():
        yield problem(f"{name}-folder", f"{there} is no folder", "move it out of the way")
        return
    status = there.stat()
    if not os.access(there, os.W_OK | os.X_OK):
        yield problem(
            f"{name}-folder",
            f"the {name} folder {folder} cannot be written",
            f"correct its permissions, or choose another with AGENT_{name.upper()}_HOME",
        )
    elif there == folder and private and status.st_uid != os.getuid():
        yield problem(f"{name}-folder", f"{folder} belongs to somebody else", f"chown -R $USER {folder}")
    elif there == folder and private and stat.S_IMODE(status.st_mode) & 0o077:
        yield warning(
            f"{name}-folder", f"others can look into {folder} (sessions, keys)", f"chmod 700 {folder}"
        )


def disk(patient: Patient) -> Iterator[Finding]:
    """Room for models and for what the program remembers."""
    state = state_folder(patient.environment)
    models = patient.models_folder
    free = free_space(state)
    if free is not None and free < _LITTLE_STATE_BYTES:
        yield problem("disk", f"only {free / 1e6:.0f} MB are free for {state}", "make room on this disk")
    free = free_space(models)
    if free is None:
        yield warning("disk", f"the free space of {models} could not be found out", "look at the disk")
    elif free < _LITTLE_MODEL_BYTES:
        yield warning(
            "disk",
            f"only {free / 1e9:.1f} GB are free for {models}",
            "make room, or set models.folder elsewhere",
        )
    else:
        yield ok("disk", f"{free / 1e9:.1f} GB are free for {models}")


def gpu(patient: Patient) -> Iterator[Finding]:
    """Whether a graphics processor is there, answers, and could be built for."""
    hardware = patient.hardware
    for note in hardware.notes:
        yield warning("gpu", note, "check the driver, with `nvidia-smi` for NVIDIA")
    if not hardware.gpus:
        yield from _no_gpu(patient)
        return
    for one in hardware.gpus:
        driver = f", driver {one.driver}" if one.driver else ""
        yield ok(
            "gpu",
            f"{one.name}, {one.free_bytes / 1e9:.1f} of {one.total_bytes / 1e9:.1f} GB free{driver}",
        )
    yield from _toolkit(patient)


def _no_gpu(patient: Patient) -> Iterator[Finding]:
    makers = {_maker(folder) for folder in (patient.outside.root / "sys/bus/pci/devices").glob("*")}
    if "0x10de" in makers:
        yield warning(
            "gpu",
            "an NVIDIA card is there, but its driver does not answer",
            "install NVIDIA's driver until `nvidia-smi` lists the card",
        )
        return
    wants = patient.profile is not None and patient.profile.gpu_layers == "all"
    if wants and patient.profile is not None and patient.profile.engine == "llama-server":
        yield warning(
            "gpu",
            f"no GPU was found, and profile {patient.profile.name!r} is made for one",
            "`agent setup` proposes a profile for this machine",
        )
    else:
        yield ok("gpu", "no GPU was found; models run on the processor")


def _maker(folder: Path) -> str:
    """The vendor of a display controller; empty for any other device."""
    try:
        is_display = (folder / "class").read_text("ascii").startswith("0x03")
        return (folder / "vendor").read_text("ascii").strip() if is_display else ""
    except (OSError, ValueError):
        return ""


def _toolkit(patient: Patient) -> Iterator[Finding]:
    """Only matters where a server still has to be built."""
    from agent.core.errors import AgentError
    from agent.resources import servers_folder
    from agent.server.binaries import installed

    system = BuildSystem(environment=patient.environment, root=patient.outside.root)
    backend = choose_backend(patient.hardware, system)
    there = installed(servers_folder(patient.environment))
    if there and all(one.backend == "CPU" for one in there):
        yield warning(
            "gpu-unused",
            "a GPU is there, and every installed server computes on the processor alone",
            f"agent server install {there[0].name} --force",
        )
    try:
        tools = find_toolchain(backend, patient.hardware, system, needs_git=False)
    except AgentError as error:
        if not there:
            yield warning("toolkit", error.message, error.hint)
        return
    yield ok("toolkit", f"a server for {tools.label} can be built: {tools.versions}")


def hidden_settings(patient: Patient) -> Iterator[Finding]:
    """What changes a llama-server behind everybody's back."""
    names = sorted(name for name in patient.environment if name.startswith(_SHIELDED))
    if names:
        yield warning(
            "llama-variables",
            f"{', '.join(names)} set: kept from servers started here, but not from one that you start",
            f"unset {' '.join(names)}",
        )
    file = patient.outside.root / "etc/llama.cpp/config.ini"
    if file.exists():
        yield warning("llama-config", f"{file} changes every llama-server", "look into it, or remove it")
    if not names and not file.exists():
        yield ok("llama-variables", "nothing else configures llama-server")
