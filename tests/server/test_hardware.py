"""What the machine has: every source through a stand-in, and no source that can break or stop it."""

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent.server.hardware import Gpu, Hardware, Memory, Probes, detect_hardware, free_space, run_program
from tests.patience import PATIENCE_SECONDS

GIB = 1024**3
MIB = 1024**2


Device = tuple[str, int | None, int, tuple[int, int]]


def fake_nvml(*devices: Device, start: Callable[[], object] = lambda: None, as_bytes: bool = False) -> Any:
    """NVIDIA's library with devices that are (name, total, free, capability); total None = not supported."""

    def name(handle: int) -> str | bytes:
        return devices[handle][0].encode() if as_bytes else devices[handle][0]

    def memory(handle: int) -> Any:
        _, total, free, _ = devices[handle]
        if total is None:
            raise RuntimeError("Not Supported")
        return SimpleNamespace(total=total, free=free)

    return SimpleNamespace(
        nvmlInit=start,
        nvmlSystemGetDriverVersion=lambda: "580.1",
        nvmlDeviceGetCount=lambda: len(devices),
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetUUID=lambda handle: f"GPU-{handle}abc",
        nvmlDeviceGetName=name,
        nvmlDeviceGetMemoryInfo=memory,
        nvmlDeviceGetCudaComputeCapability=lambda handle: devices[handle][3],
    )


def fail_to_start() -> None:
    raise RuntimeError("Driver/library version mismatch")


USUAL_MEMORY = Memory(32 * GIB, 30 * GIB)
RTX_4090: Device = ("NVIDIA GeForce RTX 4090", 24 * GIB, 20 * GIB, (8, 9))
RTX_3060: Device = ("NVIDIA GeForce RTX 3060", 12 * GIB, 11 * GIB, (8, 6))


def no_nvml() -> Any:
    raise ImportError("pynvml")


def look(
    root: Path,
    *,
    nvml: Any = None,
    outputs: Mapping[str, str] | None = None,
    memory: Memory = USUAL_MEMORY,
    platform: str = "linux",
    machine: str = "x86_64",
    environment: Mapping[str, str] | None = None,
    seconds: float = 5.0,
) -> Hardware:
    def run(arguments: Sequence[str], _seconds: float) -> str | None:
        return (outputs or {}).get(arguments[0])

    return detect_hardware(
        root,
        Probes(
            run=run,
            nvml=(lambda: nvml) if nvml is not None else no_nvml,
            memory=lambda: memory,
            cores=lambda: (8, 16),
            platform=platform,
            machine=machine,
            root=root,
            environment=environment or {},
            seconds=seconds,
        ),
    )


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, "utf-8")


def test_a_machine_without_a_gpu(tmp_path: Path):
    write(tmp_path, {"proc/cpuinfo": "processor : 0\nmodel name\t: Some CPU @ 3 GHz\n"})
    found = look(tmp_path)
    assert (found.cpu, found.physical_cores, found.logical_cores) == ("Some CPU @ 3 GHz", 8, 16)
    assert (found.ram_total, found.ram_available, found.gpus) == (32 * GIB, 30 * GIB, ())
    assert (found.vram_total, found.vram_free, found.notes) == (0, 0, ())


def test_asks_nvidias_library(tmp_path: Path):
    for as_bytes in (False, True):
        found = look(tmp_path, nvml=fake_nvml(RTX_4090, RTX_3060, as_bytes=as_bytes))
        assert found.gpus == (
            Gpu("NVIDIA GeForce RTX 4090", 24 * GIB, 20 * GIB, "8.9", "580.1"),
            Gpu("NVIDIA GeForce RTX 3060", 12 * GIB, 11 * GIB, "8.6", "580.1"),
        )
        assert (found.vram_total, found.vram_free) == (36 * GIB, 31 * GIB)


def test_asks_nvidias_program_where_the_library_is_missing_or_broken(tmp_path: Path):
    line = "0, NVIDIA GeForce RTX 3090, 24576, 24000, 8.6, 560.35, GPU-1\n"
    for nvml in (None, fake_nvml(RTX_4090, start=fail_to_start)):
        found = look(tmp_path, nvml=nvml, outputs={"nvidia-smi": line})
        assert found.gpus == (Gpu("NVIDIA GeForce RTX 3090", 24576 * MIB, 24000 * MIB, "8.6", "560.35"),)


def test_leaves_out_what_an_old_program_does_not_know(tmp_path: Path):
    line = "0, Tesla K80, 11441, 11000, [N/A], 390.1, GPU-1\n"
    assert look(tmp_path, outputs={"nvidia-smi": line}).gpus[0].compute_capability is None


def test_odd_answers_are_no_devices(tmp_path: Path):
    for output in ("", "No devices were found\n", 'Field "compute_cap" is not valid\n', "0, a, b\n", "\0\n"):
        assert look(tmp_path, outputs={"nvidia-smi": output}).gpus == ()


def test_memory_that_the_gpu_shares_with_the_machine(tmp_path: Path):
    shared = look(tmp_path, nvml=fake_nvml(("NVIDIA GB10", None, 0, (12, 1))))
    assert (shared.gpus[0].unified, shared.vram_total, shared.vram_free) == (True, 32 * GIB, 30 * GIB)
    assert shared.unified_memory
    line = "0, NVIDIA GB10, [N/A], [N/A], 12.1, 580.1, GPU-1\n"
    assert look(tmp_path, outputs={"nvidia-smi": line}).unified_memory


@pytest.mark.parametrize(
    ("visible", "names"),
    [
        ("", []),
        ("-1", []),
        ("1", ["RTX 3060"]),
        ("0,1", ["RTX 4090", "RTX 3060"]),
        ("GPU-0abc", ["RTX 4090"]),
    ],
)
def test_programs_see_only_the_devices_that_are_made_visible(tmp_path: Path, visible: str, names: list[str]):
    found = look(tmp_path, nvml=fake_nvml(RTX_4090, RTX_3060), environment={"CUDA_VISIBLE_DEVICES": visible})
    assert [gpu.name.removeprefix("NVIDIA GeForce ") for gpu in found.gpus] == names


def test_a_driver_that_does_not_answer_is_left_behind(tmp_path: Path):
    released = threading.Event()

    hanging = fake_nvml(RTX_4090, start=lambda: released.wait(PATIENCE_SECONDS))
    found = look(tmp_path, nvml=hanging, seconds=0.05)
    released.set()
    assert found.gpus == ()
    assert "did not answer" in found.notes[0]


def test_an_apple_machine_has_one_memory(tmp_path: Path):
    brand = {"sysctl": "Apple M4 Pro\n"}
    found = look(
        tmp_path, platform="darwin", machine="arm64", outputs=brand, memory=Memory(48 * GIB, 20 * GIB)
    )
    assert found.cpu == "Apple M4 Pro"
    assert found.gpus == (Gpu("Apple M4 Pro", 36 * GIB, 20 * GIB, unified=True),)
    assert look(tmp_path, platform="darwin", machine="x86_64").gpus == ()


def test_reads_what_amds_driver_says(tmp_path: Path):
    device = "sys/class/drm/card1/device"
    files = {"vendor": "0x1002\n", "device": "0x744c\n", "mem_info_vram_total": f"{24 * GIB}\n"}
    write(tmp_path, {f"{device}/{name}": content for name, content in files.items()})
    write(tmp_path, {f"{device}/mem_info_vram_used": f"{4 * GIB}\n", "sys/class/drm/card1-DP-1/status": ""})
    assert look(tmp_path).gpus == (Gpu("AMD GPU 0x744c", 24 * GIB, 20 * GIB),)


def test_a_container_has_only_what_its_limit_leaves(tmp_path: Path):
    group = "sys/fs/cgroup"
    write(tmp_path, {f"{group}/memory.max": f"{8 * GIB}\n", f"{group}/memory.current": f"{3 * GIB}\n"})
    assert look(tmp_path).ram_available == 5 * GIB
    write(tmp_path, {f"{group}/memory.stat": f"anon {2 * GIB}\ninactive_file {GIB}\n"})
    found = look(tmp_path)
    assert (found.ram_total, found.ram_available) == (8 * GIB, 6 * GIB)
    write(tmp_path, {f"{group}/memory.max": "max\n"})
    assert look(tmp_path).ram_available == 30 * GIB


def test_the_free_space_is_that_of_the_disk_where_a_folder_would_be(tmp_path: Path):
    assert free_space(tmp_path / "not" / "there" / "yet") == free_space(tmp_path)
    assert free_space(tmp_path)


def test_nothing_that_fails_gets_through(tmp_path: Path):
    def broken() -> Any:
        raise OSError("no /proc here")

    probes = Probes(
        nvml=no_nvml, memory=broken, cores=broken, root=tmp_path, run=lambda *_: None, environment={}
    )
    found = detect_hardware(tmp_path, probes)
    assert (found.ram_total, found.logical_cores) == (0, 1)
    assert "memory" in found.notes[0]


def test_a_program_that_is_missing_fails_or_hangs_has_no_output():
    assert run_program(["no-such-program-here"], 5) is None
    assert run_program([sys.executable, "-c", "raise SystemExit(3)"], 20) is None
    assert run_program([sys.executable, "-c", "input(); print('x')"], 20) is None
    assert run_program([sys.executable, "-c", "print('fine')"], 20) == "fine\n"
    assert run_program([sys.executable, "-c", "import time; time.sleep(60)"], 0.05) is None


def test_this_machine_can_be_looked_at(tmp_path: Path):
    found = detect_hardware(tmp_path)
    assert found.ram_total >= found.ram_available > 0
    assert found.logical_cores >= 1
