"""What a real server evaluates again in a session of twelve steps, by its own figures.

    python -m benchmarks.real12 [--profiles embedded-small embedded] [--output benchmarks/results/real12.json]

Sessions per profile: *Scripted*: `agent run` does the task of `session12`, and the model is bound to the
scripted calls, native ones where its template has a place for tools. *Free*: twelve requests with replies of
the model's own. `--templates FILE...` adds a scripted native session with the smallest model under each.
"""

import argparse
import asyncio
import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agent.llm.protocol import ConstrainedProtocol, NativeProtocol
from agent.llm.stats import from_timings
from agent.resources import data_folder, profiles_folder
from agent.server.download import obtain
from agent.server.profile_files import load_profile
from agent.server.record import Endpoint
from benchmarks import report12, scenario12
from benchmarks.forcing_proxy import Call, ForcingProxy
from benchmarks.native_proxy import NativeHandler
from benchmarks.real_conversation import Step, converse, reuse_in
from benchmarks.scenario12 import Protocol
from benchmarks.session12 import AGENT, Bench, make_bench
from tests.real import llama_server
from tests.real.rig import serving
from tools import built_in_tools

CONTEXT = 8192
REQUESTS = 12
MOST_SHARE = 0.02
SMALLEST = "embedded-small"
KNOW_TOOLS = ("embedded",)
"""Profiles of models whose template has a place for tools."""
PROFILE = """engine = "remote"
url = "{url}"
[sampling]
temperature = 0.0
[tools]
protocol = "{protocol}"
[model_card]
edit_form = "replace"
"""
"""The form of edits is that of the script; small models are offered another one otherwise."""


@dataclass(frozen=True, slots=True)
class Session:
    profile: str
    kind: str
    steps: Sequence[Step]

    def record(self) -> dict[str, Any]:
        reuse = reuse_in(self.steps)
        return {
            "profile": self.profile,
            "kind": self.kind,
            **asdict(reuse),
            "share_again": round(reuse.share_again, 5),
            "share_of_evaluated": round(reuse.share_of_evaluated, 5),
            "replies_dropped": sum(not step.kept for step in self.steps),
            "steps": [
                {
                    "cache_n": step.stats.cached_tokens,
                    "prompt_n": step.stats.prompt_tokens,
                    "predicted_n": step.stats.decoded_tokens,
                }
                for step in self.steps
            ],
        }


def scripted(bench: Bench, endpoint: Endpoint, protocol: Protocol) -> list[Step]:
    """`agent run` with every call as in the script, and the tools really run."""
    steps: list[Call | str] = []
    for step in scenario12.script(protocol):
        steps += [(call["name"], call["arguments"]) for call in step.get("tool_calls", ())] or [step["text"]]
    handler = NativeHandler if protocol == "native" else None
    port = int(endpoint.base_url.rpartition(":")[2])
    with (
        tempfile.TemporaryDirectory(dir=bench.folder) as folder,
        ForcingProxy(port, endpoint.api_key, steps, handler) as proxy,
    ):
        repository = scenario12.make_repository(Path(folder), bench.environment)
        profile = bench.folder / "config" / "profiles" / "forced.toml"
        profile.write_text(PROFILE.format(url=proxy.url, protocol=protocol), encoding="utf-8")
        allow = f"shell({scenario12.TEST_COMMAND})"
        bench.measure(
            (*AGENT, "run", "-p", scenario12.TASK, "--profile", "forced", "--allow", allow), repository
        )
        if wrong := scenario12.wrong_files(repository):
            raise SystemExit(f"the session left wrong files: {', '.join(wrong)}")
    return [Step(from_timings(timings), kept=True) for timings in proxy.timings]


def sessions(profile: str, folder: Path) -> list[Session]:
    found = []
    bench = make_bench(folder / "bench")
    with serving(profile, folder, threads=0, context=CONTEXT) as endpoint:
        kinds: tuple[Protocol, ...] = ("native", "constrained") if profile in KNOW_TOOLS else ("constrained",)
        found += [Session(profile, f"scripted, {kind}", scripted(bench, endpoint, kind)) for kind in kinds]
        protocols = (NativeProtocol, ConstrainedProtocol) if profile in KNOW_TOOLS else (ConstrainedProtocol,)
        for protocol in (kind(built_in_tools()) for kind in protocols):
            steps = asyncio.run(converse(endpoint.base_url, endpoint.api_key, protocol, REQUESTS))
            found.append(Session(profile, f"free, {protocol.name}", steps))
    return found


def under_template(template: Path, folder: Path) -> Session:
    """The scripted native session with the weights of the smallest model and another model's template."""
    bench = make_bench(folder / "bench")
    weights = load_profile(SMALLEST, [profiles_folder()]).model_files[0]
    model = obtain(weights, Path(os.environ.get("AGENT_MODELS_FOLDER") or data_folder() / "models"))
    words = ("-m", str(model), "-c", str(CONTEXT), "-np", "1", "--chat-template-file", str(template))
    with llama_server.serving(words, folder) as up:
        url = f"http://127.0.0.1:{up.port}"
        endpoint = Endpoint(base_url=url, api_key="", profile=SMALLEST, context_tokens=CONTEXT)
        steps = scripted(bench, endpoint, "native")
    return Session(SMALLEST, f"scripted, native, template {template.stem}", steps)


def table(records: Sequence[dict[str, Any]]) -> str:
    names = ("profile", "session", "requests", "prompt tokens", "evaluated", "again", "left out")
    lines = [
        f"| {' | '.join(names)} | again, share (at most {MOST_SHARE:.0%}) |",
        f"|{'---|' * (len(names) + 1)}",
    ]
    for one in records:
        cells = [
            one[key]
            for key in ("profile", "kind", "requests", "prompt", "evaluated", "again", "replies_dropped")
        ]
        lines.append("| " + " | ".join(map(str, cells)) + f" | {one['share_again']:.2%} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--profiles", nargs="*", default=["embedded-small", "embedded"])
    parser.add_argument("--templates", nargs="*", default=[], type=Path, metavar="FILE")
    parser.add_argument("--output", type=Path, help="write everything that was measured to this JSON file")
    options = parser.parse_args()
    load = os.getloadavg()
    records = []
    for profile in options.profiles:
        with tempfile.TemporaryDirectory(prefix="real12-") as folder:
            records += [session.record() for session in sessions(profile, Path(folder))]
    for template in options.templates:
        with tempfile.TemporaryDirectory(prefix="real12-") as folder:
            records.append(under_template(template.resolve(), Path(folder)).record())
    print(table(records))
    if options.output:
        result = {**report12.surroundings(load), "sessions": records}
        options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
