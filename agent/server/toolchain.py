"""What is needed to build a server on this machine, what of it is there, and how to get the rest.

Everything is asked before anything is downloaded, and what is missing comes with the one command that brings
it on this system.
"""

import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from agent.core.errors import ServerError
from agent.server.hardware import Gpu, Hardware, run_program
from agent.server.recipe import Backend

_PROBE_SECONDS = 10.0
_OLDEST_CMAKE = (3, 18)
"""The first whose CUDA support knows CMAKE_CUDA_ARCHITECTURES; older ones build the wrong code silently."""

_CUDA_FOLDERS = ("usr/local/cuda/bin", "opt/cuda/bin")
_BUILD_BYTES: dict[Backend, int] = {
    "cpu": 700_000_000,
    "metal": 900_000_000,
    "vulkan": 1_500_000_000,
    "rocm": 5_000_000_000,
    "cuda": 6_000_000_000,
}
"""Source and build tree together. The first was measured, the others are estimates on the safe side."""

_NO_AMX = ("-mno-amx-tile", "-mno-amx-int8", "-mno-amx-bf16")

_JOB_BYTES: dict[Backend, int] = {"cuda": 3_000_000_000, "rocm": 3_000_000_000}
_USUAL_JOB_BYTES = 1_500_000_000

_PACKAGES: dict[str, dict[str, str]] = {
    "apt-get": {
        "git": "git", "cmake": "cmake", "compiler": "build-essential", "make": "build-essential",
        "cuda": "nvidia-cuda-toolkit", "vulkan": "libvulkan-dev glslc", "rocm": "hipcc",
    },
    "dnf": {
        "git": "git", "cmake": "cmake", "compiler": "gcc-c++ make", "make": "make",
        "cuda": "cuda-toolkit", "vulkan": "vulkan-loader-devel glslc", "rocm": "rocm-hip-devel hipcc",
    },
    "pacman": {
        "git": "git", "cmake": "cmake", "compiler": "base-devel", "make": "base-devel",
        "cuda": "cuda", "vulkan": "vulkan-headers vulkan-icd-loader shaderc", "rocm": "rocm-hip-sdk",
    },
    "zypper": {
        "git": "git", "cmake": "cmake", "compiler": "gcc-c++ make", "make": "make",
        "cuda": "cuda-toolkit", "vulkan": "vulkan-devel shaderc", "rocm": "hipcc",
    },
    "apk": {
        "git": "git", "cmake": "cmake", "compiler": "build-base linux-headers", "make": "build-base",
        "vulkan": "vulkan-loader-dev shaderc",
    },
    "brew": {"git": "git", "cmake": "cmake", "make": "make"},
}  # fmt: skip
_INSTALL = {
    "apt-get": "apt-get install -y",
    "dnf": "dnf install -y",
    "pacman": "pacman -S --needed",
    "zypper": "zypper install -y",
    "apk": "apk add",
    "brew": "brew install",
}
_PAGES = {
    "cuda": "https://developer.nvidia.com/cuda-downloads",
    "rocm": "https://rocm.docs.amd.com",
    "vulkan": "https://vulkan.lunarg.com",
    "cmake": "https://cmake.org/download",
    "git": "https://git-scm.com/downloads",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """What finding out uses of the outside world; tests hand in their own."""

    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    run: Callable[[Sequence[str], float], str | None] = run_program
    platform: str = sys.platform
    root: Path = Path("/")
    python: Path = field(default_factory=lambda: Path(sys.executable))
    is_root: bool = field(default_factory=lambda: os.geteuid() == 0)
    has_pip: bool = field(default_factory=lambda: find_spec("pip") is not None)

    def find(self, name: str) -> Path | None:
        """A program on the PATH, or beside the interpreter, where tools from wheels lie."""
        found = shutil.which(name, path=self.environment.get("PATH", ""))
        beside = self.python.parent / name
        if found:
            return Path(found)
        return beside if beside.is_file() and os.access(beside, os.X_OK) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """All that a build needs. `architectures` is for CUDA, as cmake wants them; `versions` is for people.

    `language_flags` has cmake's definitions of the compilers' own flags, those of the environment included.
    """

    backend: Backend
    cmake: Path
    generator: str
    make_program: Path
    git: Path | None = None
    nvcc: Path | None = None
    architectures: str = ""
    versions: str = ""
    language_flags: Mapping[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """What computes, for people."""
        names = {"cpu": "CPU", "cuda": "CUDA", "vulkan": "Vulkan", "rocm": "ROCm", "metal": "Metal"}
        suffix = f" ({self.architectures})" if self.architectures else ""
        return names[self.backend] + suffix


@dataclass(frozen=True, slots=True)
class Lack:
    """Something that is missing: `what` names the packages that bring it, `why` is for people."""

    what: str
    why: str


def choose_backend(hardware: Hardware, system: System) -> Backend:
    """What the server should compute on: the graphics processor that is there, else the processor."""
    if system.platform == "darwin":
        return "metal"
    if any(_is_nvidia(gpu) for gpu in hardware.gpus):
        return "cuda"
    if hardware.gpus:
        return "rocm" if system.find("hipcc") else "vulkan"
    return "cpu"


def find_toolchain(backend: Backend, hardware: Hardware, system: System, *, needs_git: bool) -> Toolchain:
    """The tools for a build.

    Raises:
        ServerError: some are missing; the hint is the one command that brings all of them.
    """
    lacks: list[Lack] = []
    cmake = system.find("cmake")
    if cmake is None:
        lacks.append(Lack("cmake", "cmake is not installed"))
    elif (version := _version(cmake, system)) < _OLDEST_CMAKE:
        found = ".".join(map(str, version)) or "unknown"
        lacks.append(Lack("cmake", f"cmake is too old: {found}, and 3.18 is needed"))
    git = system.find("git")
    if needs_git and git is None:
        lacks.append(Lack("git", "git is not installed"))
    compiler = _compiler(system)
    if compiler is None:
        named = system.environment.get("CXX")
        lacks.append(
            Lack("compiler", f"there is no C++ compiler {named}" if named else "there is no C++ compiler")
        )
    maker = system.find("ninja") or system.find("make")
    if maker is None:
        lacks.append(Lack("make", "neither ninja nor make is installed"))
    nvcc, architectures = _cuda(hardware, system, lacks) if backend == "cuda" else (None, "")
    if backend == "vulkan" and system.find("glslc") is None:
        lacks.append(Lack("vulkan", "glslc, Vulkan's shader compiler, is not installed"))
    if backend == "rocm" and system.find("hipcc") is None:
        lacks.append(Lack("rocm", "hipcc, AMD's compiler, is not installed"))
    if lacks or cmake is None or maker is None:
        raise ServerError(_complaint(lacks, backend), _remedy(lacks, backend, system))
    return Toolchain(
        backend=backend,
        cmake=cmake,
        generator="Ninja" if maker.name == "ninja" else "Unix Makefiles",
        make_program=maker,
        git=git,
        nvcc=nvcc,
        architectures=architectures,
        versions=", ".join(filter(None, (_first_line(tool, system) for tool in (compiler, cmake)))),
        language_flags=_language_flags(system),
    )


def require_space(folder: Path, backend: Backend, more: int, free: int | None) -> None:
    """Refuses a build that would fill the disk.

    Args:
        folder: where it is built, for the message.
        more: bytes of the download.
        free: bytes that are free there, None = not known.

    Raises:
        ServerError: it would not fit.
    """
    needed = _BUILD_BYTES[backend] + more
    if free is not None and free < needed:
        raise ServerError(
            f"the disk of {folder} is too full: a build needs about {needed / 1e9:.1f} GB, "
            f"{free / 1e9:.1f} GB are free",
            "make room, or choose another disk with AGENT_CACHE_HOME",
        )


def jobs_for(backend: Backend, cores: int, memory_available: int) -> int:
    """How many compilers may run at once, so that the memory suffices for all of them."""
    by_memory = memory_available // _JOB_BYTES.get(backend, _USUAL_JOB_BYTES)
    return max(1, min(cores, by_memory) if memory_available else 1)


def _is_nvidia(gpu: Gpu) -> bool:
    return gpu.compute_capability is not None or gpu.driver is not None


def _compiler(system: System) -> Path | None:
    named = system.environment.get("CXX", "").split()
    return (
        system.find(named[0])
        if named
        else next(filter(None, map(system.find, ("c++", "g++", "clang++"))), None)
    )


def _language_flags(system: System) -> dict[str, str]:
    """Flags that keep AMX out of a build for x86, before the person's own, which have the last word.

    `-march=native` takes AMX when the processor announces it. There are virtual machines that announce it and
    do not let programs use it: the server then dies at its first quantised matrix. Consumer processors have
    none, so little is lost. A compiler that refuses these flags is too old for AMX or builds for no x86.
    """
    languages = (
        ("CMAKE_C_FLAGS", "c", "CC", ("cc", "gcc", "clang"), "CFLAGS"),
        ("CMAKE_CXX_FLAGS", "c++", "CXX", ("c++", "g++", "clang++"), "CXXFLAGS"),
    )
    flags: dict[str, str] = {}
    for definition, language, variable, usual, own in languages:
        named = system.environment.get(variable, "").split()
        compiler = system.find(named[0]) if named else next(filter(None, map(system.find, usual)), None)
        if compiler is None:
            continue
        trial = [str(compiler), *named[1:], *_NO_AMX, "-Werror", "-x", language, "-E", os.devnull]
        if system.run(trial, _PROBE_SECONDS) is not None:
            flags[definition] = " ".join([*_NO_AMX, system.environment.get(own, "")]).strip()
    return flags


def _cuda(hardware: Hardware, system: System, lacks: list[Lack]) -> tuple[Path | None, str]:
    """The CUDA compiler, and the architectures of the devices that are there."""
    folders = [Path(home) / "bin" for home in [system.environment.get("CUDA_HOME", "")] if home]
    folders += [system.root / folder for folder in _CUDA_FOLDERS]
    places = [system.find("nvcc"), *(folder / "nvcc" for folder in folders)]
    nvcc = next((place for place in places if place is not None and place.is_file()), None)
    capabilities = sorted(
        {gpu.compute_capability for gpu in hardware.gpus if gpu.compute_capability}, key=_numbers
    )
    if nvcc is None:
        names = ", ".join(gpu.name for gpu in hardware.gpus if _is_nvidia(gpu)) or "an NVIDIA GPU"
        lacks.append(Lack("cuda", f"the CUDA toolkit (nvcc) for {names} is not installed"))
        return None, ""
    known = system.run([str(nvcc), "--list-gpu-arch"], _PROBE_SECONDS) or ""
    strange = [
        one for one in capabilities if known and f"compute_{one.replace('.', '')}" not in known.split()
    ]
    lacks += [
        Lack("cuda-newer", f"{nvcc} does not know this GPU's compute capability {one}") for one in strange
    ]
    return nvcc, ";".join(capability.replace(".", "") for capability in capabilities)


def _complaint(lacks: Sequence[Lack], backend: Backend) -> str:
    reasons = "; ".join(lack.why for lack in lacks)
    return f"a server for {backend} cannot be built here: {reasons}"


def _remedy(lacks: Sequence[Lack], backend: Backend, system: System) -> str:
    wanted = {lack.what for lack in lacks}
    without_gpu = ""
    if wanted & {"cuda", "cuda-newer", "vulkan", "rocm"}:
        without_gpu = "; or build for the processor alone with --cpu, many times slower"
    if "cuda-newer" in wanted:
        return f"get the newest CUDA toolkit from {_PAGES['cuda']}{without_gpu}"
    return f"{install_command(wanted, system)}{without_gpu}"


def install_command(wanted: set[str], system: System) -> str:
    """What installs these tools here, as a person types it; where no way is known, what to look for."""
    if wanted <= {"cmake", "make"} and system.has_pip:
        return f"{system.python} -m pip install cmake ninja"
    if system.platform == "darwin" and wanted & {"compiler", "git", "make"}:
        more = f" && {system.python} -m pip install cmake ninja" if "cmake" in wanted else ""
        return f"xcode-select --install{more}"
    manager = next((name for name in _PACKAGES if system.find(name)), None)
    if manager is None:
        pages = [page for what, page in _PAGES.items() if what in wanted]
        return f"install {', '.join(sorted(wanted))}" + (f" (see {', '.join(pages)})" if pages else "")
    table = _PACKAGES[manager]
    unknown = sorted(what for what in wanted if what not in table)
    if unknown:
        return f"install {', '.join(unknown)} (see {_PAGES.get(unknown[0], 'your system')})"
    packages = dict.fromkeys(package for what in sorted(wanted) for package in table[what].split())
    prefix = "" if system.is_root or manager == "brew" else "sudo "
    return f"{prefix}{_INSTALL[manager]} {' '.join(packages)}"


def _version(program: Path, system: System) -> tuple[int, ...]:
    output = system.run([str(program), "--version"], _PROBE_SECONDS) or ""
    match = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", output)
    return tuple(int(part) for part in match.groups() if part) if match else ()


def _first_line(program: Path | None, system: System) -> str:
    output = system.run([str(program), "--version"], _PROBE_SECONDS) if program else None
    return output.splitlines()[0].strip() if output else ""


def _numbers(capability: str) -> tuple[int, ...]:
    return tuple(int(part) for part in capability.split(".") if part.isdecimal())
