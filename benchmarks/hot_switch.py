"""What it costs to go over to another profile in the middle of a conversation, foretold and measured.

    python -m benchmarks.hot_switch [--rounds 3] [--other-binary]

A conversation with the small model goes back and forth between two profiles that serve it in different ways:
with and without drafting from the context, or, with `--other-binary`, inside this program and by an installed
llama-server. Both were started once before, so their files are in memory. The conversation is kept; what the
session says beforehand is compared with what then happens: the tokens that the new server had to read, the
time of the switch (the old server is stopped, the new one started, and the way of calling tools tried on it,
which reads the beginning of the conversation already), and the time that the next request took for the rest.
One thread.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent.app.chat.interactive import InteractiveSession, open_session
from agent.config.load import LoadedSettings, load_settings
from agent.core.events import Event, StepFinished, TurnFinished
from agent.core.stats import StepStats
from agent.resources import data_folder

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "benchmarks" / "results" / "hot_switch.json"
FIRST = 'extends = "embedded-small"\n[model_card]\nmax_reply_tokens = 8\n'
SECOND = 'extends = "first"\n[speculation]\nkind = "ngram-mod"\nn_match = 8\nn_min = 2\nn_max = 16\n'
OTHER_BINARY = 'extends = "first"\nengine = "llama-server"\n'
LONG_PROMPT = "Tell me about the files in this folder, and mind every one of them. " * 12
SHORT_PROMPT = "Go on."


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="each is there and back (default: 3)")
    parser.add_argument("--other-binary", action="store_true", help="the second is an installed llama-server")
    parser.add_argument("--output", type=Path, default=RESULT)
    arguments = parser.parse_args()
    models = os.environ.get("AGENT_MODELS_FOLDER") or str(data_folder() / "models")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind in ("CONFIG", "STATE"):
            os.environ[f"AGENT_{kind}_HOME"] = str(folder / kind.lower())
        write_profiles(folder, OTHER_BINARY if arguments.other_binary else SECOND)
        rows = asyncio.run(switches(settings(models), folder / "work", arguments.rounds))
    result = summary(
        rows, "an installed llama-server" if arguments.other_binary else "drafting with ngram-mod"
    )
    arguments.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({key: value for key, value in result.items() if key != "rows"}, indent=1))


def write_profiles(folder: Path, second: str) -> None:
    profiles = folder / "config" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / "first.toml").write_text(FIRST, "utf-8")
    (profiles / "second.toml").write_text(second, "utf-8")
    (folder / "work").mkdir()


def settings(models: str) -> LoadedSettings:
    """One thread, one short reply for each prompt."""
    loaded = load_settings(
        None,
        {},
        {"profile": "first", "models.folder": models, "permissions.mode": "plan", "limits.max_steps": 1},
    )
    server = loaded.settings.server.model_copy(update={"threads": 1, "reuse": False})
    return replace(loaded, settings=loaded.settings.model_copy(update={"server": server}))


async def switches(loaded: LoadedSettings, work: Path, rounds: int) -> list[dict[str, Any]]:
    """A row for each switch that is counted; the first there and back only loads the files."""
    session = await open_session(work, loaded=loaded)
    events = session.events()
    rows: list[dict[str, Any]] = []
    try:
        await turn(session, events, LONG_PROMPT)
        for number in range(rounds + 1):
            for name in ("second", "first"):
                row = await switched(session, events, name)
                print(json.dumps(row), file=sys.stderr, flush=True)
                rows += [row] if number else []
    finally:
        await session.close()
    return rows


async def switched(session: InteractiveSession, events: AsyncIterator[Event], name: str) -> dict[str, Any]:
    """Goes over to a profile and asks it something; tokens and seconds, foretold and measured."""
    load = os.getloadavg()[0]
    foretold = await session.command("profile", {"name": name})
    begin = time.perf_counter()
    await session.command("profile", {"name": name, "apply": True})
    start = time.perf_counter() - begin
    stats = await turn(session, events, SHORT_PROMPT)
    return {
        "to": name,
        "load": round(load, 2),
        "was_running": foretold.is_running,
        "foretold_tokens": foretold.tokens,
        "read_tokens": stats.prompt_tokens + stats.cached_tokens,
        "of_those_before_the_turn": stats.cached_tokens,
        "foretold_prefill_seconds": None if foretold.seconds is None else round(foretold.seconds, 3),
        "foretold_by": foretold.measured_with,
        "prefill_seconds": round(stats.prompt_seconds, 3),
        "switch_seconds": round(start, 3),
        "all_seconds": round(start + stats.prompt_seconds, 3),
    }


async def turn(session: InteractiveSession, events: AsyncIterator[Event], prompt: str) -> StepStats:
    """One request; gives its figures. Raises RuntimeError where it failed."""
    session.prompt(prompt)
    stats: StepStats | None = None
    async for event in events:
        if isinstance(event, StepFinished) and stats is None:
            stats = event.stats
            session.cancel()
        elif isinstance(event, TurnFinished):
            if stats is None:
                raise RuntimeError(f"the turn came to nothing: {event.detail}")
            return stats
    raise RuntimeError("the session ended")


def summary(rows: list[dict[str, Any]], second: str) -> dict[str, Any]:
    """The middle and the ends of each figure."""
    names = (
        "foretold_tokens",
        "read_tokens",
        "foretold_prefill_seconds",
        "prefill_seconds",
        "switch_seconds",
        "all_seconds",
    )
    found = {name: spread([row[name] for row in rows if row[name] is not None]) for name in names}
    ratios = [row["read_tokens"] / row["foretold_tokens"] for row in rows]
    return {
        "what": "switch between two profiles of embedded-small in one conversation, one thread",
        "second": second,
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "processors": os.cpu_count(),
        "switches": len(rows),
        **found,
        "read_by_foretold_tokens": spread(ratios),
        "rows": rows,
    }


def spread(values: list[float]) -> dict[str, float] | None:
    if not values:
        return None
    return {
        "median": round(statistics.median(values), 3),
        "lowest": round(min(values), 3),
        "highest": round(max(values), 3),
    }


if __name__ == "__main__":
    main()
