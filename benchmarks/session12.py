"""What a session of twelve steps costs beside the model: start, processor time, memory, prompt, exit.

    python -m benchmarks.session12 [--rounds 5] [--output benchmarks/results/session12.json]

A server without a model answers from a script, in a process of its own. Times are ratios to
`python -c "import openai"` of the same interpreter in the same round: what a program that speaks to
such servers mostly waits for at its start. A ratio means the same on another machine.
"""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import report12, running_server, scenario12
from benchmarks.processes import Cost, run
from benchmarks.scenario12 import Protocol

ROOT = Path(__file__).resolve().parents[1]
PROTOCOLS: tuple[Protocol, ...] = ("native", "constrained")
IMPORT = (sys.executable, "-c", "import openai")
AGENT = (sys.executable, "-m", "agent")
PROFILE = """engine = "remote"
url = "{url}"
[tools]
protocol = "{protocol}"
"""
NAMES_FILE = "BENCHMARK_NAMES_FILE"
# Runs in every Python process of a session that has it on its path.
WATCH = f"""
import ipaddress, os, sys

LOOK_UPS = {{"getaddrinfo", "gethostbyname", "gethostbyaddr", "getnameinfo"}}

def watch(event, arguments):
    if event.removeprefix("socket.") not in LOOK_UPS:
        return
    host = arguments[0][0] if isinstance(arguments[0], tuple) else arguments[0]
    host = host.decode() if isinstance(host, bytes) else str(host)
    try:
        ipaddress.ip_address(host)
    except ValueError:
        with open(os.environ["{NAMES_FILE}"], "a", encoding="utf-8") as file:
            file.write(host + chr(10))

sys.addaudithook(watch)
with open(os.environ["{NAMES_FILE}"] + ".watched", "a", encoding="utf-8") as file:
    file.write(str(os.getpid()) + chr(10))
"""


@dataclass(frozen=True, slots=True)
class Bench:
    """Folders of one benchmark run, and the environment that its processes get."""

    folder: Path
    environment: Mapping[str, str]

    def measure(self, command: Sequence[str], folder: Path | None = None) -> Cost:
        cost = run(command, folder=folder or self.folder, environment=self.environment, scratch=self.folder)
        if cost.exit_code != 0:
            raise SystemExit(f"{' '.join(command)} ended with {cost.exit_code}\n{cost.stderr}")
        return cost


def make_bench(folder: Path) -> Bench:
    """An environment in which nothing of the person's own settings shows, and bytecode is kept."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    homes = {
        f"AGENT_{kind.upper()}_HOME": str(folder / kind) for kind in ("config", "state", "data", "cache")
    }
    git = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    environment = {**kept, **homes, **git, "HOME": str(folder), "PYTHONPATH": str(ROOT)}
    (folder / "config" / "profiles").mkdir(parents=True)
    return Bench(folder, environment)


@dataclass(frozen=True, slots=True)
class ScriptedServer:
    url: str
    pid: int

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])


@contextlib.contextmanager
def scripted_server(
    bench: Bench, protocol: Protocol, record: Path, key: str = ""
) -> Iterator[ScriptedServer]:
    """A server that plays the session, and that notes its requests in `record`."""
    script = bench.folder / f"{protocol}.json"
    script.write_text(json.dumps(scenario12.script(protocol)), encoding="utf-8")
    options = (str(script), "--record", str(record), "--api-key", key)
    command = (sys.executable, "-m", "tests.fakes.scripted_server", *options)
    with subprocess.Popen(
        command, cwd=ROOT, env=bench.environment, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as server:
        try:
            assert server.stdout is not None
            yield ScriptedServer(server.stdout.readline().split()[-1], server.pid)
        finally:
            server.terminate()


def play(bench: Bench, protocol: Protocol, *, managed: bool = False) -> tuple[Cost, list[dict[str, Any]]]:
    """One session from start to end: what it cost, and the requests that arrived.

    The server is somebody else's, or, if `managed`, the running one of a shipped profile.
    """
    record = bench.folder / "requests.jsonl"
    record.unlink(missing_ok=True)
    key = running_server.KEY if managed else ""
    with tempfile.TemporaryDirectory(dir=bench.folder) as folder:
        repository = scenario12.make_repository(Path(folder), bench.environment)
        with scripted_server(bench, protocol, record, key) as server:
            profile = _present(bench, protocol, server, managed=managed)
            allow = f"shell({scenario12.TEST_COMMAND})"
            arguments = ("run", "-p", scenario12.TASK, "--profile", profile, "--allow", allow)
            cost = bench.measure((*AGENT, *arguments), repository)
        if wrong := scenario12.wrong_files(repository):
            raise SystemExit(f"the session left wrong files: {', '.join(wrong)}\n{cost.stderr}")
    return cost, [json.loads(line) for line in record.read_text("utf-8").splitlines()]


def _present(bench: Bench, protocol: Protocol, server: ScriptedServer, *, managed: bool) -> str:
    """Makes the server known to the agent; the name of its profile."""
    if managed:
        state, models = bench.folder / "state", bench.folder / "data" / "models"
        running_server.pretend(server.pid, server.port, state=state, models=models)
        return running_server.PROFILE
    profile = bench.folder / "config" / "profiles" / "scripted.toml"
    profile.write_text(PROFILE.format(url=server.url, protocol=protocol), encoding="utf-8")
    return profile.stem


def one_round(bench: Bench) -> dict[str, Any]:
    """Each command once, one after the other, so that all meet the machine in the same mood."""
    console_script = Path(sys.executable).parent / "agent"
    with tempfile.TemporaryDirectory(dir=bench.folder) as folder:
        repository = scenario12.make_repository(Path(folder), bench.environment)
        (repository / "calc/stats.py").write_text(scenario12.EXPECTED["calc/stats.py"], encoding="utf-8")
        shell = bench.measure(("sh", "-c", scenario12.TEST_COMMAND), repository)
    found: dict[str, Any] = {
        "import_openai": report12.cost_record(bench.measure(IMPORT)),
        "help": report12.cost_record(bench.measure((*AGENT, "--help"))),
        "test_command": report12.cost_record(shell),
    }
    if console_script.exists():
        found["console_script_help"] = report12.cost_record(bench.measure((str(console_script), "--help")))
    for protocol in PROTOCOLS:
        cost, requests = play(bench, protocol)
        found[protocol] = report12.session_record(cost, requests)
    found["managed"] = report12.session_record(*play(bench, "constrained", managed=True))
    return found


def names_looked_up(bench: Bench) -> dict[str, list[str]]:
    """Names of hosts that a session asked for, by protocol. Not timed: the watch costs something."""
    hook = bench.folder / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(WATCH, encoding="utf-8")
    names: dict[str, list[str]] = {}
    for protocol in PROTOCOLS:
        noted = bench.folder / f"names-{protocol}"
        path = f"{hook}{os.pathsep}{bench.environment['PYTHONPATH']}"
        watched = {**bench.environment, "PYTHONPATH": path, NAMES_FILE: str(noted)}
        play(Bench(bench.folder, watched), protocol)
        if not noted.with_name(f"{noted.name}.watched").exists():
            raise SystemExit("the watch for names was not loaded, so nothing is known about them")
        names[protocol] = noted.read_text("utf-8").splitlines() if noted.exists() else []
    return names


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, help="write everything that was measured to this JSON file")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="session12-"))
    try:
        bench = make_bench(folder)
        load = os.getloadavg()
        one_round(bench)  # warms the caches of the disk and writes bytecode
        rounds = [one_round(bench) for _ in range(options.rounds)]
        result = {
            **report12.surroundings(load),
            "task_tokens": report12.count_tokens(scenario12.TASK),
            "names_looked_up": names_looked_up(bench),
            "summary": [asdict(row) for row in report12.summarise(rounds)],
            "rounds": rounds,
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(report12.table(result))
    if options.output:
        options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
