"""What is missing for a build, and the one command that brings it."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent.core.errors import ServerError
from agent.server.hardware import Gpu, run_program
from agent.server.recipe import Backend
from agent.server.toolchain import System, choose_backend, find_toolchain, jobs_for, require_space
from tests.fakes.build_tools import FakeTools, machine, make_tools

ADA = Gpu("RTX 4090", 24 * 10**9, 24 * 10**9, "8.9", "570.1")
AMPERE = Gpu("RTX 3090", 24 * 10**9, 24 * 10**9, "8.6", "570.1")
RADEON = Gpu("Radeon", 16 * 10**9, 16 * 10**9)


def system(tools: FakeTools, **changes) -> System:
    facts = {
        "environment": {"PATH": str(tools.path)},
        "platform": "linux",
        "root": tools.path / "root",
        "python": tools.path / "python",
        "is_root": False,
        "has_pip": True,
        "run": answer,
        **changes,
    }
    return System(**facts)


def answer(command: Sequence[str], seconds: float) -> str | None:
    """The fake tools are shell scripts that need `cat`."""
    if command[0].endswith("cmake"):
        return "cmake version 3.25.1"
    return run_program(command, seconds) or f"{Path(command[0]).name} 1.0"


def complaint(
    tools: FakeTools, backend: Backend = "cpu", *gpus: Gpu, needs_git=False, **changes
) -> ServerError:
    with pytest.raises(ServerError) as caught:
        find_toolchain(backend, machine(*gpus), system(tools, **changes), needs_git=needs_git)
    return caught.value


def test_a_machine_with_all_tools_builds_with_ninja(tmp_path: Path):
    tools = make_tools(tmp_path)
    found = find_toolchain("cpu", machine(), system(tools), needs_git=False)
    assert found.generator == "Ninja"
    assert found.cmake == tmp_path / "cmake"
    assert found.versions == "c++ 1.0, cmake version 3.25.1"


def test_without_ninja_it_builds_with_make(tmp_path: Path):
    tools = make_tools(tmp_path, without=("ninja",))
    tools.add("make")
    assert find_toolchain("cpu", machine(), system(tools), needs_git=False).generator == "Unix Makefiles"


def test_cmake_alone_comes_from_a_wheel(tmp_path: Path):
    error = complaint(make_tools(tmp_path, without=("cmake",)))
    assert "cmake is not installed" in error.message
    assert error.hint == f"{tmp_path / 'python'} -m pip install cmake ninja"


def test_cmake_from_a_wheel_is_found_beside_the_interpreter(tmp_path: Path):
    tools = make_tools(tmp_path / "venv" / "bin")
    bare = make_tools(tmp_path / "bare", without=("cmake",))
    found = find_toolchain("cpu", machine(), system(bare, python=tools.path / "python"), needs_git=False)
    assert found.cmake == tools.path / "cmake"


def test_an_old_cmake_is_refused_with_its_version(tmp_path: Path):
    tools = make_tools(tmp_path)
    error = complaint(tools, run=lambda command, seconds: "cmake version 3.10.2")
    assert "cmake is too old: 3.10.2, and 3.18 is needed" in error.message


@pytest.mark.parametrize(
    ("manager", "command"),
    [
        ("apt-get", "sudo apt-get install -y cmake build-essential git"),
        ("dnf", "sudo dnf install -y cmake gcc-c++ make git"),
        ("pacman", "sudo pacman -S --needed cmake base-devel git"),
        ("apk", "sudo apk add cmake build-base linux-headers git"),
    ],
)
def test_all_that_is_missing_comes_with_one_command_of_the_system(tmp_path: Path, manager: str, command: str):
    tools = make_tools(tmp_path, without=("cmake", "ninja", "c++"))
    tools.add(manager)
    error = complaint(tools, needs_git=True)
    assert sorted(error.hint.split()) == sorted(command.split())
    for missing in ("cmake", "git", "C++ compiler", "neither ninja nor make"):
        assert missing in error.message


def test_root_needs_no_sudo(tmp_path: Path):
    tools = make_tools(tmp_path, without=("c++",))
    tools.add("apt-get")
    assert complaint(tools, is_root=True).hint == "apt-get install -y build-essential"


def test_a_mac_without_a_compiler_gets_apples_command(tmp_path: Path):
    tools = make_tools(tmp_path, without=("c++",))
    assert complaint(tools, "metal", platform="darwin").hint == "xcode-select --install"


def test_an_unknown_system_is_told_what_to_install(tmp_path: Path):
    assert complaint(make_tools(tmp_path, without=("c++",))).hint == "install compiler"


def test_a_compiler_that_cxx_names_has_to_be_there(tmp_path: Path):
    tools = make_tools(tmp_path)
    error = complaint(tools, environment={"PATH": str(tmp_path), "CXX": "my-c++ -m64"})
    assert "no C++ compiler my-c++ -m64" in error.message


def test_a_gpu_without_the_toolkit_says_so_and_offers_the_processor(tmp_path: Path):
    tools = make_tools(tmp_path)
    tools.add("apt-get")
    error = complaint(tools, "cuda", ADA)
    assert "CUDA toolkit (nvcc) for RTX 4090 is not installed" in error.message
    assert error.hint.startswith("sudo apt-get install -y nvidia-cuda-toolkit; or build")
    assert "--cpu" in error.hint


def test_the_toolkit_is_found_where_nvidia_puts_it(tmp_path: Path):
    tools = make_tools(tmp_path / "bin")
    folder = tmp_path / "bin" / "root" / "usr" / "local" / "cuda" / "bin"
    folder.mkdir(parents=True)
    nvcc = FakeTools(folder).add("nvcc", "compute_86\ncompute_89")
    found = find_toolchain("cuda", machine(ADA, AMPERE, ADA), system(tools), needs_git=False)
    assert (found.nvcc, found.architectures) == (nvcc, "86;89")
    assert found.label == "CUDA (86;89)"


def test_a_toolkit_older_than_the_gpu_is_refused(tmp_path: Path):
    tools = make_tools(tmp_path)
    tools.add("nvcc", "compute_75\ncompute_86")
    error = complaint(tools, "cuda", ADA)
    assert "does not know this GPU's compute capability 8.9" in error.message
    assert "developer.nvidia.com" in error.hint


def test_the_graphics_processor_decides_what_computes(tmp_path: Path):
    tools = make_tools(tmp_path)
    assert choose_backend(machine(), system(tools)) == "cpu"
    assert choose_backend(machine(ADA), system(tools)) == "cuda"
    assert choose_backend(machine(RADEON), system(tools)) == "vulkan"
    assert choose_backend(machine(), system(tools, platform="darwin")) == "metal"
    tools.add("hipcc")
    assert choose_backend(machine(RADEON), system(tools)) == "rocm"


def test_a_build_leaves_amx_out_and_keeps_the_flags_of_the_person(tmp_path: Path):
    tools = make_tools(tmp_path)
    tools.add("cc")
    environment = {"PATH": str(tmp_path), "CFLAGS": '-g -DX="a  b"', "CXXFLAGS": "-g"}
    found = find_toolchain("cpu", machine(), system(tools, environment=environment), needs_git=False)
    assert found.language_flags == {
        "CMAKE_C_FLAGS": '-mno-amx-tile -mno-amx-int8 -mno-amx-bf16 -g -DX="a  b"',
        "CMAKE_CXX_FLAGS": "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16 -g",
    }


def test_a_compiler_that_does_not_know_amx_gets_no_flags_about_it(tmp_path: Path):
    tools = make_tools(tmp_path)
    tools.add("old-cc")

    def run(command: Sequence[str], seconds: float) -> str | None:
        refuses = Path(command[0]).name == "old-cc" and "-mno-amx-tile" in command
        return None if refuses else answer(command, seconds)

    environment = {"PATH": str(tmp_path), "CC": "old-cc -m64"}
    found = find_toolchain("cpu", machine(), system(tools, environment=environment, run=run), needs_git=False)
    assert list(found.language_flags) == ["CMAKE_CXX_FLAGS"]


def test_a_real_compiler_uses_no_amx_even_for_the_processor_that_is_there():
    found = find_toolchain("cpu", machine(), System(), needs_git=False)
    flags = found.language_flags.get("CMAKE_CXX_FLAGS", "").split()
    macros = run_program(["c++", *flags, "-march=native", "-x", "c++", "-dM", "-E", os.devnull], 30)
    assert macros
    assert "__AMX" not in macros


def test_compilers_at_a_time_follow_cores_and_memory():
    assert jobs_for("cpu", 8, 64 * 10**9) == 8
    assert jobs_for("cpu", 8, 4 * 10**9) == 2
    assert jobs_for("cuda", 8, 4 * 10**9) == 1
    assert jobs_for("cpu", 8, 10**8) == 1
    assert jobs_for("cpu", 8, 0) == 1


def test_a_full_disk_is_noticed_before_anything_is_fetched(tmp_path: Path):
    with pytest.raises(ServerError, match=r"needs about 0\.7 GB, 0\.1 GB are free"):
        require_space(tmp_path, "cpu", 10_000_000, 100_000_000)
    require_space(tmp_path, "cpu", 10_000_000, 10**12)
    require_space(tmp_path, "cpu", 10_000_000, None)
