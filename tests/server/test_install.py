"""A server from source to its place, with scripts for tools and a fake llama-server as what they build."""

import json
import os
import shutil
import signal
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from agent.core.errors import ServerError, UsageError
from agent.server import install as installing
from agent.server.binaries import choose, chosen_keys, installed
from agent.server.build import Step
from agent.server.hardware import run_program
from agent.server.recipe import Checkout, Release, definitions, load_recipe, recipe_names
from agent.server.sdist import Indexes
from agent.server.sources import CancelledError
from agent.server.toolchain import System
from tests.fakes.build_tools import FakeTools, machine, make_sdist, make_tools
from tests.fakes.llama_binary import make_llama_binary


@dataclass
class Bench:
    """A machine, a release for it, and what was reported."""

    root: Path
    tools: FakeTools
    release: Release
    place: installing.Workplace
    steps: list[Step] = field(default_factory=list)

    def install(self, **wish: Any) -> installing.Installed:
        order = installing.Wish(name="llama.cpp", **wish)
        return installing.install(order, self.release, self.place, self.steps.append)

    def failure(self, **wish: Any) -> ServerError:
        with pytest.raises(ServerError) as caught:
            self.install(**wish)
        return caught.value

    def build_folder(self) -> Path:
        (folder,) = (path for path in (self.root / "work").iterdir() if (path / "build.log").exists())
        return folder

    def builds(self) -> list[list[str]]:
        return [call for call in self.tools.calls() if call[0] == "--build"]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return make_bench(tmp_path)


def make_bench(root: Path, **changes: Any) -> Bench:
    binary = make_llama_binary(root / "made", any_model=True).path
    tools = make_tools(root / "bin", binary)
    sdist = make_sdist(root / "shelf")
    environment = {"PATH": f"{tools.path}{os.pathsep}/usr/bin{os.pathsep}/bin"}
    place = installing.Workplace(
        servers_folder=root / "servers",
        work_folder=root / "work",
        environment=environment,
        system=System(
            environment={"PATH": str(tools.path)},
            platform="linux",
            root=root,
            python=root / "py",
            run=run_program,
        ),
        hardware=lambda folder: machine(),
        free_space=lambda folder: 10**12,
        indexes=lambda environment: Indexes(simple=(), flat=(str(root / "shelf"),)),
        cores=lambda: 4,
        **changes,
    )
    release = Release(name="llama.cpp", version="1", title="x", dialect="llama.cpp", sdist=sdist)
    return Bench(root, tools, release, place)


def test_a_server_is_built_tried_out_and_put_in_its_place(bench: Bench):
    done = bench.install()
    assert done.path == bench.root / "servers" / "llama.cpp-1" / "bin" / "llama-server"
    assert done.dialect == "llama.cpp"
    assert "tokens from a model of random numbers" in done.verified
    assert [one.key for one in installed(bench.root / "servers")] == ["llama.cpp@1"]
    stages = list(dict.fromkeys(step.stage for step in bench.steps))
    assert stages == ["download", "unpack", "configure", "compile", "try"]


def test_the_note_says_what_it_was_made_of(bench: Bench):
    done = bench.install(web_page=False)
    note = json.loads((done.folder / "install.json").read_text("utf-8"))
    assert note["source"] == f"sha256:{bench.release.sdist.sha256 if bench.release.sdist else ''}"
    assert note["definitions"]["CMAKE_BUILD_TYPE"] == "Release"
    assert note["definitions"]["LLAMA_CURL"] == "OFF"
    assert note["definitions"]["LLAMA_USE_PREBUILT_UI"] == "OFF"
    assert "LLAMA_OPENSSL" not in note["definitions"]  # this source has no such option
    assert note["definitions"]["CMAKE_CXX_FLAGS"] == "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"
    assert note["backend"] == "CPU"


def test_the_build_tree_goes_unless_it_is_wanted(bench: Bench):
    bench.install()
    assert not list((bench.root / "work").glob("llama.cpp-1-*/build"))
    bench.install(force=True, keep_build=True)
    assert (bench.build_folder() / "build" / "bin" / "llama-server").is_file()


def test_what_is_installed_is_not_built_again(bench: Bench):
    bench.install()
    bench.install()
    assert len(bench.builds()) == 1


def test_progress_counts_the_parts_and_estimates_the_rest(bench: Bench):
    bench.install()
    compiled = [step for step in bench.steps if step.stage == "compile" and step.total]
    assert [(step.done, step.total) for step in compiled] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert compiled[0].detail == "part1.o"
    assert compiled[-1].seconds_left == 0


def test_the_percentages_of_make_are_read_too(bench: Bench):
    bench.tools.order(style="make", binary=str(bench.root / "made" / "llama-server"))
    make_switches(bench)
    bench.install()
    compiled = [step.done for step in bench.steps if step.stage == "compile" and step.total]
    assert compiled == [25, 50, 75, 100]


def test_a_compiler_error_is_shown_with_its_first_line_and_the_log(bench: Bench):
    bench.tools.order(
        compile="/src/a.cpp:3:1: warning: unused\n/src/a.cpp:7:5: error: 'x' was not declared\nb:1: error: y"
    )
    error = bench.failure()
    assert "llama.cpp@1 does not compile: /src/a.cpp:7:5: error: 'x' was not declared" in error.message
    assert str(bench.build_folder() / "build.log") in error.hint
    assert "was not declared" in (bench.build_folder() / "build.log").read_text("utf-8")
    assert installed(bench.root / "servers") == []


def test_after_a_failure_only_what_is_left_is_compiled(bench: Bench):
    bench.tools.order(compile="a.cpp:1:1: error: x")
    bench.failure()
    bench.tools.order(binary=str(bench.root / "made" / "llama-server"))
    bench.steps.clear()
    bench.install()
    assert [step.total for step in bench.steps if step.stage == "compile" and step.total] == [2, 2]
    assert "download" not in {step.stage for step in bench.steps}


def test_a_killed_compiler_points_at_the_memory_and_at_fewer_jobs(bench: Bench):
    bench.tools.order(compile="c++: fatal error: Killed signal terminated program cc1plus")
    error = bench.failure(jobs=8)
    assert "memory" in error.message
    assert "--jobs 4" in error.hint


def test_a_disk_that_fills_up_during_the_build_is_said(bench: Bench):
    bench.tools.order(compile="fatal error: error writing to /tmp/x.s: No space left on device")
    error = bench.failure()
    assert "is full" in error.message
    assert "goes on" in error.hint


def test_cmakes_own_error_is_shown_with_its_text(bench: Bench):
    bench.tools.order(configure="CMake Error at CMakeLists.txt:9 (find_package):\n  Could not find CUDA")
    error = bench.failure()
    assert "CMake Error at CMakeLists.txt:9 (find_package): Could not find CUDA" in error.message


def test_too_little_disk_is_noticed_before_the_download(tmp_path: Path):
    bench = make_bench(tmp_path)
    bench.place = replace(bench.place, free_space=lambda folder: 10**6)
    assert "too full" in bench.failure().message
    assert bench.steps == []


def test_a_missing_tool_is_noticed_before_the_download(bench: Bench):
    (bench.tools.path / "c++").unlink()
    assert "no C++ compiler" in bench.failure().message
    assert bench.steps == []


def test_a_built_program_that_does_not_start_is_not_installed(bench: Bench):
    make_switches(bench, die_loading="E  ggml_cuda: no kernel image is available for this device")
    error = bench.failure()
    assert "ended with status" in error.message
    assert "no kernel image" in error.message
    assert installed(bench.root / "servers") == []


def test_a_built_program_that_crashes_is_said_with_the_signal_and_what_may_be_wrong(bench: Bench):
    make_switches(bench, die_loading="", exit_signal=signal.SIGSEGV.value)
    error = bench.failure()
    assert error.message == "the built server crashed (SIGSEGV) instead of starting"
    assert "instructions that this machine does not run" in error.hint


def test_a_built_program_that_ends_at_its_first_request_is_not_installed(bench: Bench):
    make_switches(bench, die_in_stream=1)
    assert bench.failure().message.startswith("the built server was ended by SIGKILL at its first request")
    assert installed(bench.root / "servers") == []


def test_a_program_of_another_family_is_not_installed(bench: Bench):
    bench.release = replace(bench.release, dialect="bee-0.3")
    assert "speaks the dialect llama.cpp" in bench.failure().message


def test_a_program_that_somebody_built_is_only_tried_out(bench: Bench):
    done = bench.install(built=bench.root / "made" / "llama-server")
    assert "tokens from a model of random numbers" in done.verified
    assert bench.tools.calls() == []


def test_another_installation_at_work_is_not_disturbed(bench: Bench):
    (bench.root / "work").mkdir()
    lock = installing.FileLock(bench.root / "work" / "llama.cpp-1.lock")
    assert lock.try_acquire()
    error = bench.failure()
    lock.release()
    assert "being installed by another program" in error.message


def test_a_cancelled_build_ends_the_compilers_and_goes_on_later(bench: Bench):
    child = cancel_in_the_middle(bench)
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE
    bench.tools.order(binary=str(bench.root / "made" / "llama-server"))
    bench.place = replace(bench.place, cancelled=lambda: False)
    bench.steps.clear()
    bench.install()
    assert [step.total for step in bench.steps if step.stage == "compile" and step.total] == [2, 2]


def cancel_in_the_middle(bench: Bench) -> int:
    """Cancels once the fake compiler runs; returns its process id."""
    note = bench.root / "compiler"
    bench.tools.order(hang=str(note))
    bench.place = replace(bench.place, cancelled=note.exists)
    with pytest.raises(CancelledError):
        bench.install()
    return int(note.read_text("ascii"))


def test_a_folder_that_cannot_be_written_is_an_error_for_people(bench: Bench):
    (bench.root / "work").write_text("a file", "utf-8")
    error = bench.failure()
    assert f"cannot write {bench.root / 'work'}" in error.message
    assert "AGENT_CACHE_HOME" in error.hint


def test_a_tag_of_a_repository_is_built_at_its_commit(bench: Bench):
    commit = make_repository(bench.root / "repo")
    tagged(bench, Checkout(url=(bench.root / "repo").as_uri(), tag="v1", commit=commit))
    done = bench.install()
    assert json.loads((done.folder / "install.json").read_text("utf-8"))["commit"] == commit


def test_a_tag_that_was_moved_is_refused(bench: Bench):
    make_repository(bench.root / "repo")
    tagged(bench, Checkout(url=(bench.root / "repo").as_uri(), tag="v1", commit="0" * 40))
    error = bench.failure()
    assert "the tag was moved" in error.message
    assert not (bench.build_folder() / "source").exists()


def test_a_repository_that_is_not_there_is_said_with_gits_words(bench: Bench):
    tagged(bench, Checkout(url=(bench.root / "nowhere").as_uri(), tag="v1"))
    assert "cannot get tag v1" in bench.failure().message


def test_the_repository_is_tried_when_the_index_fails(bench: Bench):
    make_repository(bench.root / "repo")
    for file in (bench.root / "shelf").iterdir():
        file.unlink()
    bench.tools.path.joinpath("git").symlink_to(git_program())
    bench.release = replace(bench.release, checkout=Checkout(url=(bench.root / "repo").as_uri(), tag="v1"))
    done = bench.install()
    assert json.loads((done.folder / "install.json").read_text("utf-8"))["source"].startswith("git:")


def tagged(bench: Bench, checkout: Checkout) -> None:
    bench.tools.path.joinpath("git").symlink_to(git_program())
    bench.release = replace(bench.release, sdist=None, checkout=checkout)


def git_program() -> str:
    return shutil.which("git") or "git"


def make_repository(folder: Path) -> str:
    """One commit with an annotated tag `v1`. Returns the commit."""
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text("option(GGML_NATIVE x)", "utf-8")
    identity = ["-c", "user.name=A", "-c", "user.email=a@b.example", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"], ["tag", "-am", "one", "v1"]):
        subprocess.run(["git", "-C", folder, *identity, *words], check=True, capture_output=True)
    shown = subprocess.run(
        ["git", "-C", folder, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    )
    return shown.stdout.strip()


def make_switches(bench: Bench, **switches: Any) -> None:
    make_llama_binary(bench.root / "made", any_model=True, **switches)
    orders = json.loads((bench.tools.path / "orders.json").read_text("utf-8"))
    bench.tools.order(**{**orders, "binary": str(bench.root / "made" / "llama-server")})


def test_an_uninstalled_version_is_gone_and_chosen_no_more(bench: Bench):
    choose(bench.root / "servers", bench.install())
    installing.uninstall("llama.cpp@1", bench.root / "servers")
    assert installed(bench.root / "servers") == []
    assert chosen_keys(bench.root / "servers") == []
    assert not (bench.root / "servers" / "llama.cpp-1").exists()


def test_a_running_version_is_not_uninstalled(bench: Bench):
    done = bench.install()
    # A copy of a real program, because a script's process is its interpreter.
    done.path.unlink()
    shutil.copy("/bin/sleep", done.path)
    child = subprocess.Popen([done.path, "60"])
    try:
        with pytest.raises(ServerError, match=rf"is running \(process {child.pid}\)"):
            installing.uninstall("llama.cpp@1", bench.root / "servers")
    finally:
        child.kill()
        child.wait()
    assert done.path.exists()


@pytest.mark.parametrize("key", ["llama.cpp@2", "nothing", "nothing@1", "llama.cpp@../x"])
def test_what_is_not_installed_cannot_be_removed(bench: Bench, key: str):
    with pytest.raises(UsageError, match="not installed"):
        installing.uninstall(key, bench.root / "servers")


def test_every_recipe_is_complete():
    assert recipe_names() == ("beellama", "llama.cpp")
    for name in recipe_names():
        for release in load_recipe(name).releases:
            assert release.dialect
            assert release.sources()


def test_a_version_may_be_shortened():
    recipe = load_recipe("beellama")
    assert recipe.release("0.4").version == "0.4.4"
    assert recipe.release("v0.3.1").version == "0.3.1"
    assert recipe.release().dialect == "bee-0.3"
    with pytest.raises(UsageError, match=r"0\.3\.1, 0\.4\.4"):
        recipe.release("9")


def test_any_tag_can_be_named_and_a_pinned_one_keeps_its_commit():
    recipe = load_recipe("beellama")
    assert recipe.at_tag("v0.3.1").checkout == recipe.release("0.3.1").checkout
    other = recipe.at_tag("v0.4.2")
    assert (other.version, other.dialect, other.sdist) == ("0.4.2", None, None)


@pytest.mark.parametrize("tag", ["--upload-pack=x", "../x", "a b", "", "/etc"])
def test_what_is_no_tag_is_refused(tag: str):
    with pytest.raises(UsageError, match="no name of a git tag"):
        load_recipe("beellama").at_tag(tag)


def test_the_definitions_for_cuda_are_those_of_the_walk_through():
    release = load_recipe("beellama").release()
    found = definitions(release, "cuda", "89", web_page=True, source_options="")
    wanted = {
        "GGML_CUDA": "ON",
        "GGML_NATIVE": "ON",
        "GGML_CUDA_FA": "ON",
        "GGML_CUDA_FA_ALL_QUANTS": "ON",
        "CMAKE_CUDA_ARCHITECTURES": "89",
        "CMAKE_BUILD_TYPE": "Release",
    }
    assert wanted.items() <= found.items()
