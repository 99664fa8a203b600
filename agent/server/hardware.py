"""What this machine has: processor, memory, disk, graphics processors. Never an error, never a long wait.

What cannot be found out is left out, with a line in `Hardware.notes` that says why. Numbers are bytes.
"""

import importlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LIMIT_SECONDS = 4.0
_KILL_SECONDS = 0.5
_MIB = 1024 * 1024
_SMI_FIELDS = "index,name,memory.total,memory.free,compute_cap,driver_version,uuid"
_APPLE_SHARE = 0.75
"""Metal's recommended working set is two thirds to three quarters of the memory of the machine."""
_AMD_VENDOR = "0x1002"


@dataclass(frozen=True, slots=True)
class Gpu:
    """`compute_capability` as "8.9"; `unified` when its memory is the machine's own."""

    name: str
    total_bytes: int
    free_bytes: int
    compute_capability: str | None = None
    driver: str | None = None
    unified: bool = False


@dataclass(frozen=True, slots=True)
class Hardware:
    """`ram_available` is what programs can still have, caches of the system counted as free."""

    cpu: str
    physical_cores: int
    logical_cores: int
    ram_total: int
    ram_available: int
    disk_free: int | None
    gpus: tuple[Gpu, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def unified_memory(self) -> bool:
        return any(gpu.unified for gpu in self.gpus)

    @property
    def vram_total(self) -> int:
        return sum(gpu.total_bytes for gpu in self.gpus)

    @property
    def vram_free(self) -> int:
        return sum(gpu.free_bytes for gpu in self.gpus)


@dataclass(frozen=True, slots=True)
class Memory:
    total: int
    available: int


def run_program(arguments: Sequence[str], seconds: float, folder: Path | None = None) -> str | None:
    """The output of a program, run in `folder`; None when it is not there, fails or takes longer."""
    try:
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
        )
    except OSError:
        return None
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        if process.stdout:
            process.stdout.close()
        # One that hangs in a driver cannot be ended, so it is not waited for any longer.
        with suppress(subprocess.TimeoutExpired):
            process.wait(_KILL_SECONDS)
        return None
    return output.decode("utf-8", "replace") if process.returncode == 0 else None


def load_nvml() -> Any:
    """NVIDIA's management library, if its Python binding is installed.

    Raises:
        ImportError: it is not.
    """
    return importlib.import_module("pynvml")


def system_memory() -> Memory:
    import psutil

    memory = psutil.virtual_memory()
    return Memory(memory.total, memory.available)


def core_counts() -> tuple[int, int]:
    """Physical and logical cores."""
    import psutil

    logical = psutil.cpu_count() or 1
    return psutil.cpu_count(logical=False) or logical, logical


@dataclass(frozen=True, slots=True)
class Probes:
    """What finding out uses of the outside world."""

    run: Callable[[Sequence[str], float], str | None] = run_program
    nvml: Callable[[], Any] = load_nvml
    memory: Callable[[], Memory] = system_memory
    cores: Callable[[], tuple[int, int]] = core_counts
    platform: str = sys.platform
    machine: str = field(default_factory=lambda: os.uname().machine)
    root: Path = Path("/")
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    seconds: float = LIMIT_SECONDS


def detect_hardware(folder: Path, probes: Probes | None = None) -> Hardware:
    """Looks at the machine.

    Args:
        folder: where model files go, for the free space on its disk; it may not exist yet.
    """
    probes = probes or Probes()
    memory, physical, logical = Memory(0, 0), 1, 1
    # Whatever a strange system answers, the rest of the report is still worth having.
    with suppress(Exception):
        memory = _limited(probes.memory(), probes.root)
    with suppress(Exception):
        physical, logical = probes.cores()
    gpus, notes = _gpus(probes, memory)
    if not memory.total:
        notes = (*notes, "the size of the memory could not be found out")
    return Hardware(
        cpu=_cpu_name(probes),
        physical_cores=physical,
        logical_cores=logical,
        ram_total=memory.total,
        ram_available=memory.available,
        disk_free=free_space(folder),
        gpus=gpus,
        notes=notes,
    )


def free_space(folder: Path) -> int | None:
    """Free bytes for an ordinary user where `folder` is or would be."""
    for existing in (folder.absolute(), *folder.absolute().parents):
        with suppress(OSError):
            status = os.statvfs(existing)
            return status.f_bavail * status.f_frsize
    return None


def _limited(memory: Memory, root: Path) -> Memory:
    """A container may have less than the machine: the limit of its control group (version 2)."""
    group = root / "sys/fs/cgroup"
    limit, used = _number(group / "memory.max"), _number(group / "memory.current")
    if limit is None or used is None or limit >= memory.total:
        return memory
    for line in (_read(group / "memory.stat") or "").splitlines():
        name, _, value = line.partition(" ")
        if name == "inactive_file" and value.isdecimal():
            used -= int(value)  # pages of files that the system gives back on demand
    return Memory(limit, max(0, min(memory.available, limit - used)))


def _gpus(probes: Probes, memory: Memory) -> tuple[tuple[Gpu, ...], tuple[str, ...]]:
    if probes.platform == "darwin":
        return _apple(probes, memory), ()
    visible = probes.environment.get("CUDA_VISIBLE_DEVICES")
    gpus, notes = _nvidia(probes, memory, visible)
    return (gpus or _amd(probes.root)), notes


def _apple(probes: Probes, memory: Memory) -> tuple[Gpu, ...]:
    if probes.machine != "arm64":
        return ()
    budget = int(memory.total * _APPLE_SHARE)
    return (Gpu(_cpu_name(probes), budget, min(budget, memory.available), unified=True),)


def _nvidia(probes: Probes, memory: Memory, visible: str | None) -> tuple[tuple[Gpu, ...], tuple[str, ...]]:
    started = time.monotonic()
    try:
        library = probes.nvml()
    except ImportError:
        library = None
    if library is not None:
        found, in_time = _within(lambda: _from_nvml(library, memory, visible), probes.seconds)
        if not in_time:
            return (), (f"the NVIDIA driver did not answer within {probes.seconds:g} s",)
        if found:
            return found, ()
    left = max(0.5, probes.seconds - (time.monotonic() - started))
    query = ["nvidia-smi", f"--query-gpu={_SMI_FIELDS}", "--format=csv,noheader,nounits"]
    return _from_smi(probes.run(query, left) or "", memory, visible), ()


def _within(action: Callable[[], tuple[Gpu, ...]], seconds: float) -> tuple[tuple[Gpu, ...], bool]:
    """Runs `action` and waits so long at the most; a library that hangs is left behind."""
    found: list[tuple[Gpu, ...]] = []
    thread = threading.Thread(target=lambda: found.append(action()), daemon=True)
    thread.start()
    thread.join(seconds)
    return (found[0] if found else ()), not thread.is_alive()


def _from_nvml(library: Any, memory: Memory, visible: str | None) -> tuple[Gpu, ...]:
    gpus = []
    # The library's errors are many classes of its own; whichever comes, there is no usable device.
    with suppress(Exception):
        library.nvmlInit()
        driver = _text(library.nvmlSystemGetDriverVersion())
        for index in range(library.nvmlDeviceGetCount()):
            handle = library.nvmlDeviceGetHandleByIndex(index)
            if not _is_visible(visible, index, _text(library.nvmlDeviceGetUUID(handle))):
                continue
            major, minor = library.nvmlDeviceGetCudaComputeCapability(handle)
            total = free = 0
            with suppress(Exception):  # not supported where the memory is the machine's own
                info = library.nvmlDeviceGetMemoryInfo(handle)
                total, free = int(info.total), int(info.free)
            name = _text(library.nvmlDeviceGetName(handle))
            gpus.append(_nvidia_gpu(name, total, free, f"{major}.{minor}", driver, memory))
    return tuple(gpus)


def _from_smi(output: str, memory: Memory, visible: str | None) -> tuple[Gpu, ...]:
    gpus = []
    for line in output.splitlines():
        parts = [part.strip() for part in line.split(",")]
        if len(parts) != len(_SMI_FIELDS.split(",")) or not parts[0].isdecimal():
            continue
        index, name, total, free, capability, driver, identity = parts
        if _is_visible(visible, int(index), identity):
            sizes = [int(size) * _MIB if size.isdecimal() else 0 for size in (total, free)]
            capability = capability if capability.replace(".", "").isdecimal() else ""
            gpus.append(_nvidia_gpu(name, sizes[0], sizes[1], capability, driver, memory))
    return tuple(gpus)


def _nvidia_gpu(name: str, total: int, free: int, capability: str, driver: str, memory: Memory) -> Gpu:
    if total <= 0:
        return Gpu(name, memory.total, memory.available, capability or None, driver, unified=True)
    return Gpu(name, total, free, capability or None, driver)


def _is_visible(visible: str | None, index: int, identity: str) -> bool:
    """Whether `CUDA_VISIBLE_DEVICES` lets programs see the device; unset means all of them."""
    if visible is None:
        return True
    wanted = [one.strip() for one in visible.split(",")]
    return any(one == str(index) or (one.startswith("GPU-") and identity.startswith(one)) for one in wanted)


def _amd(root: Path) -> tuple[Gpu, ...]:
    """AMD's devices as its kernel driver describes them."""
    gpus = []
    with suppress(OSError):
        for card in sorted((root / "sys/class/drm").glob("card[0-9]")):
            device = card / "device"
            total, used = _number(device / "mem_info_vram_total"), _number(device / "mem_info_vram_used")
            if _read(device / "vendor") == _AMD_VENDOR and total and used is not None:
                name = _read(device / "product_name") or f"AMD GPU {_read(device / 'device') or ''}".strip()
                gpus.append(Gpu(name, total, max(0, total - used)))
    return tuple(gpus)


def _cpu_name(probes: Probes) -> str:
    if probes.platform == "darwin":
        name = probes.run(["sysctl", "-n", "machdep.cpu.brand_string"], probes.seconds)
        return (name or "").strip() or probes.machine
    for line in (_read(probes.root / "proc/cpuinfo") or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip().lower() in ("model name", "hardware") and value.strip():
            return value.strip()
    return probes.machine


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _read(path: Path) -> str | None:
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return None


def _number(path: Path) -> int | None:
    text = _read(path)
    return int(text) if text and text.isdecimal() else None
