"""The sessions of `compaction.py` on real servers: what they evaluated, by their own figures.

    python -m benchmarks.compaction_real [--template FILE] [--output benchmarks/results/compaction_real.json]

One thread. The model has the vocabulary and the template of SmolLM2 135M and one small layer of noise: what a
prompt costs in tokens depends on vocabulary, template and cache, and on nothing that the layers compute. The
whole model would read for an hour. Replies are forced. Constrained calls are
played on the built-in engine and on llama-server; native ones on llama-server if `--template` names a chat
template with a place for tools.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from agent.resources import data_folder, profiles_folder
from agent.server.download import obtain
from agent.server.loopback import request_json
from agent.server.profile_files import load_profile
from benchmarks import compaction, report12, session12
from benchmarks.compaction import FILL, STEPS, Figures, Scenario
from benchmarks.forcing_proxy import ForcingProxy
from benchmarks.native_proxy import NativeHandler
from benchmarks.scenario12 import Protocol
from benchmarks.vocabulary_model import write_vocabulary_model
from tests.real import llama_server
from tests.real.rig import serving

SMALLEST = "embedded-small"
KINDS = ("built-in", "binary", "native")
_ANSWER_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Served:
    """A server to play with."""

    name: str
    port: int
    api_key: str = ""

    def count(self, text: str) -> int:
        """Tokens of a text, as the server cuts it."""
        body = {"content": text, "parse_special": True}
        status, answer = request_json(
            self.port, "POST", "/tokenize", self.api_key, body, timeout=_ANSWER_SECONDS
        )
        if status != 200:
            raise RuntimeError(f"the server does not count tokens: {answer}")
        return len(answer["tokens"])


def small_model(folder: Path, context: int) -> Path:
    """With the vocabulary and the template of the smallest model."""
    weights = load_profile(SMALLEST, [profiles_folder()]).model_files[0]
    models = os.environ.get("AGENT_MODELS_FOLDER")
    whole = obtain(weights, Path(models) if models else data_folder() / "models")
    return write_vocabulary_model(whole, folder / f"vocabulary-{context}.gguf", context=context)


@contextmanager
def built_in(model: Path, context: int, folder: Path, *_: str) -> Iterator[Served]:
    # In batches as a llama-server has them: the small ones of the profile are for a slot that is soon free.
    changes = {"context": context, "target": {"file": str(model)}, "batch": 2048, "ubatch": 512}
    with serving(SMALLEST, folder, **changes) as endpoint:
        port = int(endpoint.base_url.rpartition(":")[2])
        yield Served("built-in engine", port, endpoint.api_key)


@contextmanager
def binary(model: Path, context: int, folder: Path, *words: str) -> Iterator[Served]:
    own = ("-m", str(model), "-c", str(context), "-np", "1", "--cache-ram", "0")
    with llama_server.serving((*own, *words), folder) as up:
        yield Served("llama-server", up.port)


def play(scenario: Scenario, protocol: Protocol, served: Served, folder: Path) -> Figures:
    """One session from start to end."""
    bench = session12.make_bench(folder)
    handler = NativeHandler if protocol == "native" else None
    replies = compaction.Replies(scenario, protocol)
    with ForcingProxy(served.port, served.api_key, replies, handler) as proxy:
        exit_code = compaction.run_session(scenario, protocol, bench, proxy.url, served.count)
        chats = [
            compaction.Chat(body, timings["cache_n"] + timings["prompt_n"], timings["cache_n"])
            for body, timings in zip(proxy.requests, proxy.timings, strict=True)
        ]
    return compaction.figures(scenario, protocol, exit_code, chats, served.count)


def measure(template: Path | None, scenarios: Sequence[Scenario]) -> Iterator[tuple[str, Figures]]:
    """The name of each server, and what a session took of it."""
    words = ("--chat-template-file", str(template))
    with tempfile.TemporaryDirectory(prefix="compaction-") as name:
        for scenario in scenarios:
            window = scenario.window
            model = small_model(Path(name), window)
            for number, kind in enumerate(KINDS if template else KINDS[:-1]):
                folder = Path(name, f"{scenario.name}-{number}")
                (folder / "server").mkdir(parents=True)
                serve = built_in if kind == "built-in" else binary
                more = words if kind == "native" else ()
                with serve(model, window, folder / "server", *more) as served:
                    protocol: Protocol = "native" if kind == "native" else "constrained"
                    yield served.name, play(scenario, protocol, served, folder / "bench")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--template", type=Path, help="a chat template for native calls")
    parser.add_argument("--scenario", choices=(FILL.name, STEPS.name), help="only this one")
    parser.add_argument("--output", type=Path, help="write everything that was measured to this JSON file")
    options = parser.parse_args()
    template = options.template.resolve() if options.template else None
    load = os.getloadavg()
    found: list[tuple[str, Figures]] = []
    scenarios = [one for one in (FILL, STEPS) if options.scenario in (None, one.name)]
    for name, row in measure(template, scenarios):
        found.append((name, row))
        print(f"{name}\n{compaction.table([row])}", flush=True)
        if options.output:
            sessions = [{"server": server, **asdict(one)} for server, one in found]
            result = {**report12.surroundings(load), "sessions": sessions}
            options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    raise SystemExit(0 if all(row.holds for _, row in found) else 1)


if __name__ == "__main__":
    main()
