"""What sessions cost that outgrow the context window: tokens evaluated, and what the summary takes.

    python -m benchmarks.compaction [--output benchmarks/results/compaction.json]

A server without a model answers `agent run` from a script, and counts tokens as a server with one slot and a
prompt cache would: pieces of at most four letters. *Fill* reads 11 pages of 3,600 tokens in a window of
32,768. *Steps* makes 100 steps in a window of 8,192, each reading a short file. `compaction_real.py` has
real servers play the same sessions.
"""

import argparse
import json
import shutil
import sys
import tempfile
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agent.core.worklog import BEGINNING
from benchmarks import report12, session12
from benchmarks.forcing_proxy import Call as Forced
from benchmarks.processes import run
from benchmarks.scenario12 import Protocol
from tests.fakes.chat import render_prompt, tokenize
from tests.fakes.script import Call, Step
from tests.fakes.scripted_server import ScriptedServer
from tests.fakes.state import ServerSettings

ASKS = "Sum up our conversation"
MOST_EVALUATED = 45_000
MOST_BESIDE = 500
TOKENS_PER_COMPACTION = 4_000
_OTHER_FILES = 20
NOTES = (
    "Decided: to read every page in order and to note its number, because the task asks for that. "
    "Done: nothing was changed. Found: each page begins with its number and has one line for each word; "
    "none of them contradicts another. Failed: nothing. Open: the pages that come after this one, "
    "then a short answer that says how many there were."
)


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    pages: int
    tokens: int
    window: int
    steps: int

    def page(self, number: int, count: Callable[[str], int]) -> str:
        """A page of the most lines that, with the numbers `read` puts before them, have fewer tokens."""
        lines = [f"page {number} says word {place * 7} and more" for place in range(self.tokens)]
        numbered = [f"{place}\t{line}\n" for place, line in enumerate(lines, 1)]
        most = bisect_left(range(self.tokens), self.tokens, key=lambda size: count("".join(numbered[:size])))
        return "\n".join(lines[: most - 1]) + "\n"


FILL = Scenario("fill", pages=11, tokens=3_600, window=32_768, steps=12)
STEPS = Scenario("steps", pages=99, tokens=280, window=8_192, steps=100)


@dataclass(frozen=True, slots=True)
class Figures:
    """One session. `evaluated` are prompt tokens that were not cached, also of each of the `summaries`.

    `new` are tokens of what the conversation got that had not been in it, `least_new` those between two
    compactions.
    """

    scenario: str
    protocol: str
    exit_code: int
    requests: int
    refused: int
    largest_prompt: int
    evaluated: int
    summaries: Sequence[int]
    new: int
    least_new: int | None

    @property
    def holds(self) -> bool:
        finished = self.exit_code == 0 and self.refused == 0
        beside = max(self.summaries, default=0) <= MOST_BESIDE
        if self.scenario == FILL.name:
            return finished and beside and self.evaluated <= MOST_EVALUATED
        rare = self.least_new is None or self.least_new >= TOKENS_PER_COMPACTION
        return finished and beside and rare


class Replies:
    """What the model says in a session: reads page after page, and sums up where it is asked to."""

    def __init__(self, scenario: Scenario, protocol: Protocol) -> None:
        self._scenario, self._protocol = scenario, protocol
        self._made = 0

    def __call__(self, body: Mapping[str, Any]) -> Forced | str:
        if is_for_summary(body):
            return self._said(NOTES)
        self._made += 1
        if self._made > self._scenario.pages:
            return self._said(f"There are {self._scenario.pages} pages.")
        return "read", {"path": f"page{self._made - 1:02d}.txt"}

    def _said(self, text: str) -> Forced | str:
        return ("finish", {"answer": text}) if self._protocol == "constrained" else text


@dataclass(frozen=True, slots=True)
class Chat:
    """A request as the server saw it; `prompt_tokens` are all of its prompt."""

    body: Mapping[str, Any]
    prompt_tokens: int
    cached_tokens: int


def count_pieces(text: str) -> int:
    return len(tokenize(text))


def play(scenario: Scenario, protocol: Protocol, bench: session12.Bench) -> Figures:
    """One session from start to end."""
    replies = Replies(scenario, protocol)

    def answer(body: Mapping[str, Any]) -> Step:
        reply = replies(body)
        if isinstance(reply, str):
            return Step(text=reply, times=0)
        return Step(tool_calls=(Call(*reply),), times=0)

    server = ScriptedServer([answer], ServerSettings(n_ctx=scenario.window))
    try:
        exit_code = run_session(scenario, protocol, bench, server.url, count_pieces)
        chats = [Chat(one.body, one.prompt_tokens, one.cached_tokens) for one in server.chats]
        return figures(scenario, protocol, exit_code, chats, count_pieces)
    finally:
        server.close()


def run_session(
    scenario: Scenario, protocol: Protocol, bench: session12.Bench, url: str, count: Callable[[str], int]
) -> int:
    """The exit code of `agent run` with the task of the scenario."""
    folder = bench.folder / f"{scenario.name}-{protocol}"
    folder.mkdir()
    for number in range(scenario.pages):
        (folder / f"page{number:02d}.txt").write_text(scenario.page(number, count), encoding="utf-8")
    for number in range(_OTHER_FILES):  # the files of a small folder would be shown from the start
        (folder / f"other{number:02d}.txt").write_text("nothing of interest\n", encoding="utf-8")
    text = session12.PROFILE.format(url=url, protocol=protocol)
    (bench.folder / "config/profiles/scripted.toml").write_text(text, encoding="utf-8")
    task = "Read all pages in this folder, one after the other, and say how many there are."
    arguments = ("run", "-p", task, "--profile", "scripted", "--max-steps", str(scenario.steps + 1))
    cost = run(
        (*session12.AGENT, *arguments), folder=folder, environment=bench.environment, scratch=bench.folder
    )
    if cost.exit_code != 0:
        print(cost.stderr, file=sys.stderr)
    return cost.exit_code


def is_for_summary(body: Mapping[str, Any]) -> bool:
    return ASKS in str(body["messages"][-1].get("content"))


def figures(
    scenario: Scenario, protocol: str, exit_code: int, chats: Sequence[Chat], count: Callable[[str], int]
) -> Figures:
    """From the requests as the server saw them. Those that only warm the cache count as well."""
    seen: set[str] = set()
    between: list[int] = []
    new = since = 0
    summaries: list[int] = []
    for chat in chats:
        if is_for_summary(chat.body):
            summaries.append(chat.prompt_tokens - chat.cached_tokens)
            between.append(since)
            since = 0
            continue
        for message in chat.body["messages"]:
            key = json.dumps(message, sort_keys=True)
            if key not in seen and BEGINNING not in key:
                seen.add(key)
                size = count(render_prompt({"messages": [message]}))
                new, since = new + size, since + size
    return Figures(
        scenario=scenario.name,
        protocol=protocol,
        exit_code=exit_code,
        requests=len(chats),
        refused=sum(chat.prompt_tokens >= scenario.window for chat in chats),
        largest_prompt=max(chat.prompt_tokens for chat in chats),
        evaluated=sum(chat.prompt_tokens - chat.cached_tokens for chat in chats),
        summaries=summaries,
        new=new,
        least_new=min(between, default=None),
    )


def table(rows: Sequence[Figures]) -> str:
    """The figures in Markdown."""
    lines = [
        "| session | calls | exit | requests | refused | largest prompt | prompt tokens evaluated "
        "| compactions | evaluated by a request for a summary | new tokens before one "
        "| within its limits |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        least = "" if row.least_new is None else f"{row.least_new:,}"
        lines.append(
            f"| {row.scenario} | {row.protocol} | {row.exit_code} | {row.requests} | {row.refused} "
            f"| {row.largest_prompt:,} | {row.evaluated:,} | {len(row.summaries)} "
            f"| {max(row.summaries, default=0)} | {least} | {'yes' if row.holds else 'no'} |"
        )
    return "\n".join(lines)


def measure() -> list[Figures]:
    """Both sessions with both ways of calling tools."""
    folder = Path(tempfile.mkdtemp(prefix="compaction-"))
    try:
        bench = session12.make_bench(folder)
        return [play(one, kind, bench) for one in (FILL, STEPS) for kind in session12.PROTOCOLS]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", type=Path, help="write everything that was measured to this JSON file")
    options = parser.parse_args()
    rows = measure()
    print(table(rows))
    if options.output:
        result = {**report12.surroundings((0.0,)), "sessions": [asdict(row) for row in rows]}
        del result["load_average_before"], result["load_average_after"]
        options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    raise SystemExit(0 if all(row.holds for row in rows) else 1)


if __name__ == "__main__":
    main()
