"""How soon an interrupted request gives the slot of a real server back: while it reads, and while it writes.

    python -m benchmarks.interrupt [--profile embedded] [--threads 2] [--output PATH]

One thread, if no other number is given. Each round sends a prompt of some thousand tokens with the agent's
own client, interrupts it, and asks `/slots` until the slot is idle. Told are seconds until the stream is
closed and until the slot is idle, and the server's own processor time until then, which an idle machine
would have taken with one thread. The seconds until the slot is idle count where the machine has a free core
for each thread. What a reply still got after the interruption is counted in tokens.
"""

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from agent.core.events import Prefill, TextDelta
from agent.core.guide import Offer
from agent.core.messages import SystemMessage, UserMessage
from agent.core.model import Reply
from agent.llm.client import ChatModel, Connection
from agent.llm.probe import protocol_named
from agent.resources import data_folder
from agent.server.loopback import request_json
from agent.server.profile_files import load_profile
from agent.server.record import Endpoint
from tests.real import llama_server
from tests.real.rig import ROOT, serving

CONTEXT = 4096
_SENTENCES = 130
_POLL_SECONDS = 0.01
_GIVE_UP_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Round:
    """Seconds from the interruption on; `worked` is processor time of the server. `read` tokens of the prompt
    were read by then, `more` of the reply came after it.
    """

    closed: float
    idle: float
    worked: float
    read: int
    more: int


@contextmanager
def embedded(profile: str, threads: int) -> Iterator[tuple[Endpoint, int]]:
    """The built-in engine as the profile has it, and the size of its batches in tokens."""
    batch = load_profile(profile, [ROOT / "server_profiles"]).batch
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(profile, Path(folder), threads, context=CONTEXT) as endpoint,
    ):
        yield endpoint, batch


@contextmanager
def binary(profile: str, threads: int) -> Iterator[tuple[Endpoint, int]]:
    """The installed llama-server with the same model and batches."""
    shipped = load_profile(profile, [ROOT / "server_profiles"])
    model = shipped.model_files[0].path_in(data_folder() / "models")
    size = str(shipped.batch)
    words = ["-m", str(model), "-c", str(CONTEXT), "--jinja", "-np", "1", "-b", size, "-ub", size]
    words += ["-t", str(threads)]
    with tempfile.TemporaryDirectory() as folder, llama_server.serving(words, Path(folder)) as up:
        url = f"http://127.0.0.1:{up.port}"
        pid = next(child.pid for child in psutil.Process().children() if "llama" in child.name())
        endpoint = Endpoint(base_url=url, api_key="", profile=profile, context_tokens=CONTEXT, pid=pid)
        yield endpoint, shipped.batch


SERVERS = {"built-in engine": embedded, "llama-server": binary}


async def interrupted(endpoint: Endpoint, prompt: str, *, writing: bool) -> Round:
    """One request, interrupted after its first progress, or after its first words if `writing`."""
    cancel = asyncio.Event()
    model = ChatModel(
        Connection(base_url=endpoint.base_url, api_key=endpoint.api_key, llama_fields=True, grammars=True),
        protocol_named("native", ()),
        context_tokens=CONTEXT,
        sampling={"temperature": 0.0, "ignore_eos": True},
        cancel=cancel,
    )
    messages = [SystemMessage("You are a helpful assistant."), UserMessage(prompt)]
    stopped = worked = 0.0
    read, before = 0, 0
    async for item in model.generate(messages, max_tokens=512, offer=Offer()):
        if isinstance(item, Prefill):
            read = item.processed
        if isinstance(item, TextDelta):
            before += 1
        due = before >= 8 if writing else isinstance(item, Prefill) and item.processed > item.cached
        if due and not stopped:
            stopped, worked = time.perf_counter(), processor_seconds(endpoint)
            cancel.set()
        if isinstance(item, Reply):
            break
    closed = time.perf_counter() - stopped
    slot = await asyncio.to_thread(idle_slot, endpoint)
    idle, worked = time.perf_counter() - stopped, processor_seconds(endpoint) - worked
    await model.close()
    after = (slot.get("next_token") or [{}])[0].get("n_decoded", 0) if writing else 0
    return Round(round(closed, 4), round(idle, 3), round(worked, 3), read, max(0, after - before))


def processor_seconds(endpoint: Endpoint) -> float:
    times = psutil.Process(endpoint.pid).cpu_times()
    return times.user + times.system


def idle_slot(endpoint: Endpoint) -> dict[str, Any]:
    """Asks until the only slot works no more; `/slots` itself is answered between two batches."""
    port = int(endpoint.base_url.rpartition(":")[2])
    deadline = time.perf_counter() + _GIVE_UP_SECONDS
    while time.perf_counter() < deadline:
        status, slots = request_json(port, "GET", "/slots", endpoint.api_key, timeout=_GIVE_UP_SECONDS)
        if status == 200 and not slots[0].get("is_processing"):
            return slots[0]
        time.sleep(_POLL_SECONDS)
    raise TimeoutError(f"the slot was still busy after {_GIVE_UP_SECONDS:.0f} s")


def long_prompt(number: int) -> str:
    """Some two thousand tokens, other ones for each round, so that nothing of them is cached."""
    lines = (f"Round {number}, rule {one}: keep part {one * 7} short." for one in range(_SENTENCES))
    return " ".join(lines)


def rows_of(endpoint: Endpoint, batch: int, rounds: int) -> dict[str, Any]:
    table: dict[str, Any] = {"batch_tokens": batch}
    for kind in ("reading", "writing"):
        writing = kind == "writing"
        prompts = [f"Count up from {one}." if writing else long_prompt(one) for one in range(rounds)]
        done = [asyncio.run(interrupted(endpoint, one, writing=writing)) for one in prompts]
        table[kind] = {
            "closed_seconds": round(median(one.closed for one in done), 3),
            "idle_seconds": round(median(one.idle for one in done), 3),
            "idle_seconds_most": round(max(one.idle for one in done), 3),
            "processor_seconds": round(median(one.worked for one in done), 3),
            "processor_seconds_most": max(one.worked for one in done),
            "tokens_after": max(one.more for one in done),
            "rounds": [asdict(one) for one in done],
        }
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--profile", action="append", help="default: embedded-small")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    result: dict[str, Any] = {"load": round(os.getloadavg()[0], 2), "date": time.strftime("%Y-%m-%d")}
    result["threads"] = options.threads
    for profile in options.profile or ["embedded-small"]:
        for name, server in SERVERS.items():
            with server(profile, options.threads) as (endpoint, batch):
                row = rows_of(endpoint, batch, options.rounds)
            result[f"{profile}, {name}"] = row
            for kind in ("reading", "writing"):
                found = row[kind]
                worked, idle = found["processor_seconds_most"], found["idle_seconds_most"]
                print(f"{profile}, {name}, {kind}: at most {worked:.2f} s of work, {idle:.2f} s until idle")
            if options.output:
                options.output.write_text(json.dumps(result, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
