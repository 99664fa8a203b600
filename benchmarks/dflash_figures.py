"""What a DFlash drafter is accepted, what it costs, and what that makes of the speed.

    python -m benchmarks.dflash_figures --output benchmarks/results/dflash_figures.json [--drafts 0,1,7]

Greedy, through llama-server with one thread, on prompts that no drafter was trained with. Times are processor
time, which other work on the machine makes little longer. The cost of checking several tokens at once is that
of as many conversations in one batch, measured without a drafter; the drafter's share of the time is taken
from the server's log. The two and the accepted length foretell the speed, which is then compared with the
measured one.
"""

import argparse
import json
import os
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agent.resources import data_folder, profiles_folder
from agent.server.download import obtain
from agent.server.profile_files import load_profile
from benchmarks.plain_server import PlainServer, drafted_between, drafter_seconds, serving, upstream_binary

HERE = Path(__file__).parent
_SLOTS = 8
_MOST_TOKENS_IN_A_BATCH = 8


@dataclass(frozen=True, slots=True)
class Prompt:
    """`kind` of the text that is asked for; `body` is what is sent beside the limits."""

    kind: str
    body: dict[str, Any]


@dataclass(slots=True)
class Tally:
    """What replies of one kind with one length of drafts came to. Seconds are processor time of decoding."""

    tokens: int = 0
    checks: int = 0
    drafted: int = 0
    accepted: int = 0
    accepted_at: list[int] | None = None
    seconds: float = 0.0

    def add(self, other: "Tally") -> None:
        self.tokens += other.tokens
        self.checks += other.checks
        self.drafted += other.drafted
        self.accepted += other.accepted
        self.seconds += other.seconds
        mine, theirs = self.accepted_at or [], other.accepted_at or []
        longest = max(len(mine), len(theirs))
        padded = [one + [0] * (longest - len(one)) for one in (mine, theirs)]
        self.accepted_at = [first + second for first, second in zip(*padded, strict=True)]

    def as_table(self) -> dict[str, Any]:
        passes = self.tokens - self.accepted
        return {
            **asdict(self),
            "tokens_per_second": round(self.tokens / self.seconds, 2) if self.seconds else None,
            "tokens_per_pass": round(self.tokens / passes, 3) if passes else None,
            "mean_accepted_length": round(1 + self.accepted / self.checks, 3) if self.checks else None,
            "accept_rate": round(self.accepted / self.drafted, 3) if self.drafted else None,
            "share_at": [round(hits / self.checks, 3) for hits in self.accepted_at or () if self.checks],
        }


def prompts() -> Iterator[Prompt]:
    held_out = tomllib.loads((HERE / "dflash_draft" / "words.toml").read_text("utf-8"))["held_out"]
    others = tomllib.loads((HERE / "dflash_prompts.toml").read_text("utf-8"))
    for text in held_out:
        yield Prompt("code", {"messages": [{"role": "user", "content": text}]})
    for text in others["prose"]:
        yield Prompt("prose", {"messages": [{"role": "user", "content": text}]})
    form = {"type": "json_schema", "json_schema": {"name": "action", "schema": others["schema"]}}
    for text in others["tool_call"]:
        messages = [{"role": "system", "content": others["system"]}, {"role": "user", "content": text}]
        yield Prompt("tool_call", {"messages": messages, "response_format": form})


def reply(server: PlainServer, prompt: Prompt, tokens: int) -> tuple[Tally, str]:
    """The figures and the text of one greedy reply; the prompt is read before the clock is looked at."""
    body = {**prompt.body, "temperature": 0, "cache_prompt": True}
    server.post("/v1/chat/completions", {**body, "max_tokens": 1})
    before, began = server.counters(), server.cpu_seconds()
    answer = server.post("/v1/chat/completions", {**body, "max_tokens": tokens})
    seconds, drafted = server.cpu_seconds() - began, drafted_between(before, server.counters())
    return (
        Tally(
            tokens=answer["timings"]["predicted_n"],
            checks=drafted.drafts,
            drafted=drafted.drafted,
            accepted=drafted.accepted,
            accepted_at=list(drafted.by_position),
            seconds=round(seconds, 3),
        ),
        answer["choices"][0]["message"]["content"],
    )


@dataclass(frozen=True, slots=True)
class Bench:
    """Where things are, and how much is measured. `rounds` are for speeds; the fastest counts."""

    binary: Path
    target: Path
    draft: Path
    folder: Path
    tokens: int
    rounds: int

    def words(self, drafts: int) -> list[str]:
        words = ["-m", str(self.target), "-c", "2048", "-np", "1", "-t", "1", "--jinja", "-lv", "4"]
        if drafts:
            words += [
                "-md",
                str(self.draft),
                "--spec-type",
                "draft-dflash",
                "--spec-draft-n-max",
                str(drafts),
            ]
        return words

    def curve(self, drafts: int) -> tuple[dict[str, Any], list[str]]:
        """All prompts with drafts of up to this length; figures by kind of text, and the texts."""
        with serving(self.binary, self.words(drafts), self.folder / f"drafts-{drafts}.log") as server:
            kinds: dict[str, Tally] = {}
            texts: list[str] = []
            wall = 0.0
            for prompt in prompts():
                runs = [reply(server, prompt, self.tokens) for _ in range(self.rounds)]
                texts.append(runs[0][1])
                best = min((tally for tally, _ in runs), key=lambda tally: tally.seconds)
                for kind in (prompt.kind, "all"):
                    kinds.setdefault(kind, Tally()).add(best)
            for line in server.log.splitlines():
                if " eval time =" in line and "prompt eval" not in line:
                    wall += float(line.split("eval time =")[1].split("ms")[0]) / 1000
            share = drafter_seconds(server.log) / wall if wall else 0.0
        table = {kind: tally.as_table() for kind, tally in kinds.items()}
        return {"n_max": drafts, "drafter_share_of_time": round(share, 4), "kinds": table}, texts

    def batch_costs(self, steps: int) -> list[float]:
        """Milliseconds of processor time of one step with 1, 2, 3 ... tokens in its batch."""
        words = ["-m", str(self.target), "-c", "4096", "-np", str(_SLOTS), "-t", "1", "--kv-unified"]
        costs = []
        with serving(self.binary, words, self.folder / "batch.log") as server:
            for count in range(1, _MOST_TOKENS_IN_A_BATCH + 1):
                times = [self._batch(server, count, steps) for _ in range(self.rounds)]
                costs.append(round(1000 * min(times) / steps, 3))
        return costs

    def _batch(self, server: PlainServer, count: int, steps: int) -> float:
        def ask(slot: int, tokens: int) -> Any:
            body = {"prompt": f"Number {slot} is a story about", "n_predict": tokens, "id_slot": slot}
            return server.post("/completion", {**body, "temperature": 0, "ignore_eos": True})

        with ThreadPoolExecutor(count) as pool:
            list(pool.map(lambda slot: ask(slot, 1), range(count)))
            began = server.cpu_seconds()
            list(pool.map(lambda slot: ask(slot, steps), range(count)))
            return server.cpu_seconds() - began


def foretold(curves: Sequence[dict[str, Any]], costs: Sequence[float]) -> list[dict[str, Any]]:
    """Speed-up by the cost model and as measured, for each length of drafts.

    Tokens per pass / (cost of checking n + 1 tokens + cost of the draft), in units of a pass with one.
    """
    plain = next((one for one in curves if one["n_max"] == 0), None)
    rows = []
    for curve in curves:
        total = curve["kinds"]["all"]
        if not curve["n_max"] or not total["checks"] or plain is None:
            continue
        step = 1000 * total["seconds"] / total["checks"]
        draft = step * curve["drafter_share_of_time"]
        check = costs[curve["n_max"]]
        length = total["mean_accepted_length"]
        rows.append(
            {
                "n_max": curve["n_max"],
                "tokens_per_pass": length,
                "check_in_passes": round(check / costs[0], 3),
                "draft_in_passes": round(draft / costs[0], 3),
                "foretold": round(length / ((check + draft) / costs[0]), 3),
                "measured": round(total["tokens_per_second"] / plain["kinds"]["all"]["tokens_per_second"], 3),
                "foretold_where_memory_is_the_limit": round(length / (1 + draft_share_of_weights()), 3),
            }
        )
    return rows


def draft_share_of_weights() -> float:
    """Bytes that a draft reads against a pass of the target, the target's output matrix included in both."""
    target, draft = (
        file.bytes or 0 for file in load_profile("embedded-dflash", [profiles_folder()]).model_files
    )
    output = 49_152 * 576 * 34 / 32  # Q8_0: 34 bytes for 32 weights
    return (draft + output) / target


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--binary", type=Path, help="a llama-server; default: the installed one")
    parser.add_argument("--draft", type=Path, help="default: the shipped drafter")
    parser.add_argument("--drafts", default="0,1,2,3,4,5,6,7", help="longest drafts, 0 = none")
    parser.add_argument("--tokens", type=int, default=192, help="of each reply at most")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=64, help="for the cost of a batch")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    models = Path(os.environ.get("AGENT_MODELS_FOLDER") or data_folder() / "models")
    target, draft = (
        obtain(file, models) for file in load_profile("embedded-dflash", [profiles_folder()]).model_files
    )
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(
            binary=arguments.binary or upstream_binary(),
            target=target,
            draft=arguments.draft or draft,
            folder=Path(folder),
            tokens=arguments.tokens,
            rounds=arguments.rounds,
        )
        found: dict[str, Any] = {"command": "python -m benchmarks.dflash_figures", "load": os.getloadavg()[0]}
        found |= {
            "tokens": bench.tokens,
            "rounds": bench.rounds,
            "batch_milliseconds": bench.batch_costs(arguments.steps),
        }
        print(found["batch_milliseconds"], flush=True)
        curves, texts = [], []
        for drafts in (int(word) for word in arguments.drafts.split(",")):
            curve, written = bench.curve(drafts)
            curves.append(curve)
            texts.append(written)
            found |= {"curves": curves, "model": foretold(curves, found["batch_milliseconds"])}
            found["identical_outputs"] = [
                sum(one == other for one, other in zip(texts[0], these, strict=True)) for these in texts
            ]
            arguments.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
            print(json.dumps(curve["kinds"]["all"]), flush=True)
    print(json.dumps(found["model"], indent=1))


if __name__ == "__main__":
    main()
