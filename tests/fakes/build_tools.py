"""A machine on which a server could be built: tools that are scripts, and a package with a source in it."""

import hashlib
import io
import json
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.server.hardware import Hardware
from agent.server.recipe import Sdist

_CMAKE = Path(__file__).with_name("fake_cmake.py")
CMAKE_LISTS = 'option(LLAMA_CURL  "" OFF)\noption(LLAMA_USE_PREBUILT_UI "" ON)\n'


@dataclass(frozen=True)
class FakeTools:
    """`path` is the folder for the PATH."""

    path: Path

    def add(self, name: str, script: str = "") -> Path:
        """A tool that prints `script`, or its name, whatever it is asked."""
        tool = self.path / name
        tool.write_text(f"#!/bin/sh\ncat <<'END'\n{script or name + ' 1.0'}\nEND\n", "utf-8")
        tool.chmod(0o755)
        return tool

    def order(self, **orders: Any) -> None:
        """What cmake does, see `tests.fakes.fake_cmake`."""
        (self.path / "orders.json").write_text(json.dumps(orders), "utf-8")

    def calls(self) -> list[list[str]]:
        file = self.path / "calls"
        return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []


def make_tools(folder: Path, binary: Path | None = None, *, without: tuple[str, ...] = ()) -> FakeTools:
    """cmake, ninja and a compiler, but for those in `without`. `binary` is what a build leaves."""
    folder.mkdir(parents=True, exist_ok=True)
    tools = FakeTools(folder)
    for name in {"ninja", "c++"} - set(without):
        tools.add(name)
    if "cmake" not in without:
        cmake = folder / "cmake"
        cmake.write_text(f'#!/bin/sh\nexec "{sys.executable}" -IS "{_CMAKE}" "{folder}" "$@"\n', "utf-8")
        cmake.chmod(0o755)
    tools.order(binary=str(binary))
    return tools


def machine(*gpus: Any, memory: int = 16_000_000_000) -> Hardware:
    return Hardware("a processor", 4, 8, memory, memory, 10**12, tuple(gpus))


def make_sdist(shelf: Path, files: Mapping[str, str] | None = None) -> Sdist:
    """Puts an archive on the shelf; what it holds is in `pack-1/server`."""
    shelf.mkdir(parents=True, exist_ok=True)
    path = shelf / "pack-1.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, text in (files or {"pack-1/server/CMakeLists.txt": CMAKE_LISTS}).items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode("utf-8"))
            archive.addfile(member, io.BytesIO(text.encode("utf-8")))
    content = path.read_bytes()
    return Sdist(
        project="pack",
        version="1",
        file=path.name,
        sha256=hashlib.sha256(content).hexdigest(),
        bytes=len(content),
        folder="pack-1/server",
    )
