"""What a warm start saves: tokens of a second run, seconds until a session goes on, a head start.

    python -m benchmarks.warm_start [--profile embedded-small] [--tokens 6000] [--rounds 3] [--output FILE]

A real server of the profile is started with one thread. *Second run*: the server is stopped after the first
run in a project; what the new server has evaluated after the second one comes from its own `/metrics`.
*Resume*: `agent run --continue` against a server that was just started, with the saved state and without,
from the start of the process to the first piece of the reply. *Head start*: from the start of the process
until the server gets the beginning of the prompt, seen by a proxy in front, in times of `import openai`.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agent.resources import data_folder
from agent.server.loopback import request_json
from agent.server.record import Record, list_records, write_record

ROOT = Path(__file__).resolve().parents[1]
AGENT = (sys.executable, "-m", "agent")
REPLY_TOKENS = 8
TASK = "Say in one word which file is the shortest."
PIECES = frozenset({"text_delta", "reasoning_delta", "tool_call_delta"})
MOST_TOKENS = 64
LEAST_RATIO = 10.0
MOST_OF_IMPORT = 0.5


@dataclass(frozen=True, slots=True)
class Bench:
    """Folders of one benchmark run, and the environment of its processes."""

    folder: Path
    environment: Mapping[str, str]

    @property
    def project(self) -> Path:
        return self.folder / "project"

    def agent(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {**self.environment, **variables}
        return subprocess.run(
            [*AGENT, *words], cwd=self.project, env=environment, capture_output=True, text=True, check=False
        )

    def run(self, task: str, *words: str) -> dict[str, Any]:
        """The result of one `agent run` of a single step."""
        ended = self.agent("run", "-p", task, "--max-steps", "1", "--output", "json", *words)
        try:
            return json.loads(ended.stdout)
        except ValueError:
            raise SystemExit(f"agent run ended with {ended.returncode}\n{ended.stderr}") from None

    def record(self) -> Record:
        [record] = list_records(self.folder / "state" / "run")
        return record

    def restart(self) -> None:
        for words in (("server", "stop", "--force"), ("server", "start")):
            ended = self.agent(*words)
            if ended.returncode and words[1] == "start":
                raise SystemExit(ended.stderr)


@contextmanager
def made_bench(profile: str, context: int) -> Iterator[Bench]:
    """A project, settings of its own and no server of anybody else's; the server is stopped at the end."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kinds = ("config", "state", "cache")
        environment = {
            **{name: os.environ[name] for name in ("PATH", "LANG", "HOME") if name in os.environ},
            **{f"AGENT_{kind.upper()}_HOME": str(folder / kind) for kind in kinds},
            "AGENT_DATA_HOME": str(data_folder()),
            "AGENT_PROFILE": "warm-bench",
            "AGENT_SERVER_THREADS": "1",
            "AGENT_LIMITS_REPLY_TOKENS": str(REPLY_TOKENS),
            "PYTHONPATH": str(ROOT),
        }
        profiles = folder / "config" / "profiles"
        profiles.mkdir(parents=True)
        (profiles / "warm-bench.toml").write_text(f'extends = "{profile}"\ncontext = {context}\n', "utf-8")
        bench = Bench(folder, environment)
        bench.project.mkdir()
        (bench.project / "AGENTS.md").write_text("Indent with four spaces. Keep functions short.\n", "utf-8")
        for number in range(20):
            (bench.project / f"part_{number}.py").write_text(f"VALUE = {number}\n", "utf-8")
        try:
            yield bench
        finally:
            bench.agent("server", "stop", "--force")


def evaluated(record: Record) -> int:
    """Tokens of prompts that the server has evaluated since its start, by its own count."""
    with socket.create_connection((record.host, record.port), timeout=30) as connection:
        head = f"GET /metrics HTTP/1.0\r\nAuthorization: Bearer {record.api_key}\r\n\r\n"
        connection.sendall(head.encode("ascii"))
        text = connection.makefile("rb").read().decode("utf-8")
    line = next(one for one in text.splitlines() if one.startswith("llamacpp:prompt_tokens_total"))
    return int(float(line.split()[1]))


def tokens_of(record: Record, text: str) -> int:
    _, answer = request_json(record.port, "POST", "/tokenize", record.api_key, {"content": text})
    return len(answer["tokens"])


def second_run(bench: Bench) -> dict[str, Any]:
    """Tokens evaluated by a new server in the second run of a project, its own warm-up aside."""
    first = bench.run("Say in one word which file is the longest.")
    first_tokens = evaluated(bench.record())
    bench.restart()
    before = evaluated(bench.record())
    second = bench.run(TASK)
    record = bench.record()
    task = tokens_of(record, f"Task: {TASK}")
    tokens = evaluated(record) - before
    return {
        "first_run_tokens": first_tokens,
        "second_run_tokens": tokens,
        "task_tokens": task,
        "beside_the_task": tokens - task,
        "prompt_tokens": second["stats"]["prompt_tokens"] + second["stats"]["cached_tokens"],
        "seconds": {"first": first["seconds"], "second": second["seconds"]},
    }


def first_piece(bench: Bench, limit: float, *words: str, **variables: str) -> float:
    """Seconds from the start of a run to the first piece of a reply; `limit` where it takes longer."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        [*AGENT, "run", "--max-steps", "1", "--output", "jsonl", *words],
        cwd=bench.project,
        env={**bench.environment, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    timer = threading.Timer(limit, process.terminate)
    timer.start()
    lines = iter(process.stdout or ())
    found = next(
        (time.perf_counter() - begin for line in lines if json.loads(line).get("type") in PIECES), None
    )
    _, errors = process.communicate()
    timer.cancel()
    if found is None and time.perf_counter() - begin < limit:
        raise SystemExit(f"there was no reply\n{errors}")
    return limit if found is None else found


def resume(bench: Bench, tokens: int, head: int, limit: float) -> dict[str, Any]:
    """Time to the first piece of a reply in a session of `tokens` that goes on, with its state and without.

    `head` is how many of them every session has. After `limit` seconds a run is broken off.
    """
    bench.restart()
    each = tokens_of(bench.record(), line_of(100))
    text = "\n".join(line_of(100 + number) for number in range(max(1, (tokens - head) // each)))
    run = bench.run(f"{text}\n\n{TASK}")
    held = run["stats"]["prompt_tokens"] + run["stats"]["cached_tokens"] + run["stats"]["decoded_tokens"]
    states = [json.loads(path.read_text("utf-8")) for path in bench.folder.glob("state/slots/*/*.json")]
    sizes = [one["size"] for one in states if one["kind"] == "session"]
    if not sizes:
        raise SystemExit("the state of the session was not kept")
    again = ("--continue", "--fork", "-p", TASK)
    seconds: dict[str, float] = {}
    for name, variables in (("with", {}), ("without", {"AGENT_SERVER_STATE_MIB": "0"})):
        bench.restart()
        seconds[name] = round(first_piece(bench, limit, *again, **variables), 3)
    return {
        "session_tokens": held,
        "state_bytes": max(sizes),
        "seconds_with_state": seconds["with"],
        "seconds_without": seconds["without"],
        "broken_off": seconds["without"] >= limit,
        "ratio": round(seconds["without"] / seconds["with"], 1),
    }


def line_of(number: int) -> str:
    return f"Measurement {number}: valve {number * 7 % 97} was open for {number * 13 % 59} minutes."


@dataclass(slots=True)
class Proxy:
    """Passes connections on to a server, and notes when the head of a request for `path` comes."""

    target: tuple[str, int]
    path: bytes
    seen: list[float] = field(default_factory=list)
    listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))

    @property
    def port(self) -> int:
        return self.listener.getsockname()[1]

    def serve(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with client, socket.create_connection(self.target) as server:
            first = client.recv(65_536)
            if first.split(b" ")[1:2] == [self.path]:
                self.seen.append(time.perf_counter())
            server.sendall(first)
            back = threading.Thread(target=_copy, args=(server, client), daemon=True)
            back.start()
            _copy(client, server)
            back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65_536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return


def head_start(bench: Bench, rounds: int) -> dict[str, Any]:
    """When the server gets the beginning of the prompt, in times of `import openai`."""
    bench.run(TASK)
    record = bench.record()
    proxy = Proxy((record.host, record.port), b"/completion")
    threading.Thread(target=proxy.serve, daemon=True).start()
    imports, starts = [], []
    write_record(replace(record, port=proxy.port), bench.folder / "state" / "run")
    try:
        for _ in range(rounds):
            # Another conversation takes the slot, so that there is something to read.
            other = {"prompt": "Something else.", "n_predict": 1}
            request_json(record.port, "POST", "/completion", record.api_key, other, timeout=60)
            proxy.seen.clear()
            begin = time.perf_counter()
            bench.run(TASK)
            if not proxy.seen:
                raise SystemExit("nothing was read early")
            starts.append(proxy.seen[0] - begin)
            begin = time.perf_counter()
            subprocess.run([sys.executable, "-c", "import openai"], check=True, env=dict(bench.environment))
            imports.append(time.perf_counter() - begin)
    finally:
        write_record(record, bench.folder / "state" / "run")
        proxy.listener.close()
    return {
        "seconds": [round(one, 3) for one in starts],
        "import_openai": [round(one, 3) for one in imports],
        "of_import": round(statistics.median(starts) / statistics.median(imports), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--profile", default="embedded-small")
    parser.add_argument("--tokens", type=int, default=6000, help="size of the session that goes on")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--limit", type=float, default=600.0, help="seconds after which a resume is broken off"
    )
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    context = max(4096, -(-(options.tokens + 2048) // 1024) * 1024)
    with made_bench(options.profile, context) as bench:
        result = {"profile": options.profile, "load": os.getloadavg()[0], "second_run": second_run(bench)}
        print(json.dumps(result["second_run"]), flush=True)
        result["head_start"] = head_start(bench, options.rounds)
        print(json.dumps(result["head_start"]), flush=True)
        result["resume"] = resume(bench, options.tokens, result["second_run"]["prompt_tokens"], options.limit)
        print(json.dumps(result["resume"]), flush=True)
    result["holds"] = {
        "second_run": result["second_run"]["beside_the_task"] <= MOST_TOKENS,
        "head_start": result["head_start"]["of_import"] < MOST_OF_IMPORT,
        "resume": result["resume"]["ratio"] >= LEAST_RATIO,
    }
    text = json.dumps(result, indent=2)
    if options.output:
        options.output.write_text(f"{text}\n", "utf-8")
    print(text)


if __name__ == "__main__":
    main()
