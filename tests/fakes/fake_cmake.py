"""Stands in for `cmake`: configures nothing, compiles nothing, and leaves a fake llama-server.

`python fake_cmake.py FOLDER ARGUMENTS…`; `FOLDER/orders.json` says what goes wrong, each call is added to
`FOLDER/calls`. A build has four parts; those that were done are remembered in the build folder, as by ninja.

orders: `version`; `configure` and `compile`: lines to print before ending with status 1 (the latter after the
second part); `hang`: after the second part, start a child, write its process id to this file, and wait;
`style`: "ninja" or "make"; `binary`: the file to leave as the built program.
"""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

PARTS = 4


def main() -> int:
    folder, arguments = Path(sys.argv[1]), sys.argv[2:]
    orders = json.loads((folder / "orders.json").read_text("utf-8"))
    if arguments == ["--version"]:
        print(f"cmake version {orders.get('version', '3.25.1')}")
        return 0
    with (folder / "calls").open("a", encoding="utf-8") as calls:
        calls.write(json.dumps(arguments) + "\n")
    if arguments[0] == "--build":
        return compile_parts(Path(arguments[1]), orders)
    return configure(Path(arguments[arguments.index("-B") + 1]), orders)


def configure(build: Path, orders: dict) -> int:
    build.mkdir(parents=True, exist_ok=True)
    (build / "CMakeCache.txt").write_text("cache", "utf-8")
    if "configure" in orders:
        print(orders["configure"])
        return 1
    print("-- Configuring done")
    return 0


def compile_parts(build: Path, orders: dict) -> int:
    done_file = build / "parts"
    done = int(done_file.read_text("ascii")) if done_file.exists() else 0
    left = PARTS - done
    for number in range(1, left + 1):
        if done == 2 and "compile" in orders:
            print(orders["compile"], flush=True)
            return 1
        if done == 2 and "hang" in orders:
            hang(Path(orders["hang"]))
        done += 1
        done_file.write_text(str(done), "ascii")
        if orders.get("style") == "make":
            print(f"[{100 * done // PARTS:3d}%] Building CXX object part{done}.o", flush=True)
        else:
            print(f"[{number}/{left}] Building CXX object src/part{done}.o", flush=True)
    (build / "bin").mkdir(exist_ok=True)
    shutil.copy2(orders["binary"], build / "bin" / "llama-server")
    return 0


def hang(note: Path) -> None:
    """As ninja starts a compiler: in a process group of its own."""
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], process_group=0)
    scratch = note.with_name(f"{note.name}.new")
    scratch.write_text(str(child.pid), "ascii")
    scratch.replace(note)
    print("waiting", flush=True)
    signal.pause()


if __name__ == "__main__":
    sys.exit(main())
