"""How soon an interrupted request gives the slot of a real server back: while it reads, and while it writes.

    python -m benchmarks.interrupt [--profile embedded] [--threads 2] [--fitted] [--output PATH]

One thread, if no other number is given. Each round sends a prompt of some thousand tokens with the agent's
own client, interrupts it at the beginning of a batch, and waits until the server says in its log that the
request is over: a server that is asked all the time looks later for who has left. Told are seconds until the
stream is closed and until the slot is idle, the server's own processor time until then, which an idle machine
would have taken with one thread, and the tokens that were read or written after the interruption, in batches
too. The seconds until the slot is idle count where the machine has a free core for each thread.

With `--fitted` one prompt is read first, and the batch is that of a machine which is known to read as fast
(`batch_seconds` in the profile); without, the batch of the profile.
"""

import argparse
import asyncio
import json
import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from agent.config.load import load_settings
from agent.core.events import Prefill, TextDelta
from agent.core.guide import Offer
from agent.core.messages import SystemMessage, UserMessage
from agent.core.model import Reply
from agent.llm.client import ChatModel, Connection
from agent.llm.probe import protocol_named
from agent.server.batch_fit import fitted, told
from agent.server.loopback import request_json
from agent.server.profile import Profile
from agent.server.profile_files import load_profile
from agent.server.record import Endpoint
from tests.real import llama_server
from tests.real.rig import ROOT, serving

CONTEXT = 4096
_SENTENCES = 130
_RATE_CHARACTERS = 900
_POLL_SECONDS = 0.01
_ENDING = re.compile(r"stop processing: n_tokens = (\d+)")
_GIVE_UP_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Round:
    """Seconds from the interruption on; `worked` is processor time of the server. `read` tokens of the prompt
    were read by then, `more` were read or written after it.
    """

    closed: float
    idle: float
    worked: float
    read: int
    more: int


@contextmanager
def embedded(profile: Profile, threads: int) -> Iterator[Endpoint]:
    """The built-in engine with the batch of `profile`, which may be another one than the shipped."""
    changes = profile.model_dump(include={"batch", "ubatch"})
    drafting = profile.speculation.model_dump(exclude_defaults=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(profile.name, Path(folder), threads, context=CONTEXT, speculation=drafting, **changes) as up,
    ):
        yield up


@contextmanager
def binary(profile: Profile, threads: int) -> Iterator[Endpoint]:
    """The installed llama-server with the same model and batches."""
    model = profile.model_files[0].path_in(load_settings(None, os.environ, {}).settings.models.folder)
    words = ["-m", str(model), "-c", str(CONTEXT), "--jinja", "-np", "1", "-t", str(threads)]
    words += ["-b", str(profile.batch), "-ub", str(profile.batch)]
    with tempfile.TemporaryDirectory() as folder, llama_server.serving(words, Path(folder)) as up:
        yield Endpoint(
            base_url=f"http://127.0.0.1:{up.port}",
            api_key="",
            profile=profile.name,
            context_tokens=CONTEXT,
            pid=next(child.pid for child in psutil.Process().children() if "llama" in child.name()),
            log_file=up.log_file,
        )


SERVERS = {"built-in engine": embedded, "llama-server": binary}


def reading_rate(endpoint: Endpoint) -> float:
    """Tokens a second of one prompt, as the server says."""
    port = int(endpoint.base_url.rpartition(":")[2])
    body = {"prompt": long_prompt(0)[:_RATE_CHARACTERS], "n_predict": 0, "cache_prompt": False}
    status, said = request_json(port, "POST", "/completion", endpoint.api_key, body, timeout=_GIVE_UP_SECONDS)
    if status != 200:
        raise OSError(f"the server did not read a prompt: {said}")
    return float(said["timings"]["prompt_per_second"])


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
    read, before, ended = 0, 0, len(endings(endpoint))
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
    tokens = await asyncio.to_thread(tokens_at_end, endpoint, ended)
    idle, worked = time.perf_counter() - stopped, processor_seconds(endpoint) - worked
    await model.close()
    more = max(0, tokens - read - before)
    return Round(round(closed, 4), round(idle, 3), round(worked, 3), read, more)


def processor_seconds(endpoint: Endpoint) -> float:
    times = psutil.Process(endpoint.pid).cpu_times()
    return times.user + times.system


def endings(endpoint: Endpoint) -> list[int]:
    """The tokens that the slot held at the end of each request, as the server's log has them."""
    assert endpoint.log_file is not None
    return [int(found) for found in _ENDING.findall(endpoint.log_file.read_text("utf-8", "replace"))]


def tokens_at_end(endpoint: Endpoint, ended: int) -> int:
    """Waits until the server says that one request more than `ended` is over."""
    deadline = time.perf_counter() + _GIVE_UP_SECONDS
    while time.perf_counter() < deadline:
        if len(found := endings(endpoint)) > ended:
            return found[-1]
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
            "batches_after": round(max(one.more for one in done) / batch, 2),
            "rounds": [asdict(one) for one in done],
        }
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--profile", action="append", help="default: embedded-small")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--fitted", action="store_true", help="with the batch that fits this machine")
    parser.add_argument("--server", choices=SERVERS, help="only this one")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    result: dict[str, Any] = {"load": round(os.getloadavg()[0], 2), "date": time.strftime("%Y-%m-%d")}
    result["threads"] = options.threads
    for profile in options.profile or ["embedded-small"]:
        shipped = load_profile(profile, [ROOT / "server_profiles"])
        for name, server in SERVERS.items():
            if options.server not in (None, name):
                continue
            chosen, rate = shipped, None
            if options.fitted:
                with server(shipped, options.threads) as endpoint:
                    rate = reading_rate(endpoint)
                chosen = fitted(shipped, rate)
            with server(chosen, options.threads) as endpoint:
                row = rows_of(endpoint, chosen.batch, options.rounds)
            result[f"{profile}, {name}"] = {"read_tok_s": rate and round(rate, 1), **row}
            why = told(shipped, chosen, rate) if rate else f"reads {chosen.batch} tokens at once"
            print(f"{profile}, {name}: {why}")
            for kind in ("reading", "writing"):
                found = row[kind]
                worked, idle = found["processor_seconds_most"], found["idle_seconds_most"]
                after = f"{found['tokens_after']} tokens"
                after += f" or {found['batches_after']:g} batches" if kind == "reading" else ""
                print(f"  {kind}: at most {worked:.2f} s of work, {idle:.2f} s until idle, {after} after it")
            if options.output:
                options.output.write_text(json.dumps(result, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
