"""What becomes of a run when the model or the server does something wrong, and what a request costs then.

    python -m benchmarks.recovery [--only TEXT] [--output benchmarks/results/recovery.json]

Each fault of `benchmarks.faults` is played by the scripted server to one `agent run`. A run is right when it
ends with the exit code and the file that the fault allows, writes nothing else, and sends no history that a
strict server or template refuses. Below it prints what the session of twelve steps measured, from its result.
"""

import argparse
import datetime
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.faults import FAULTS, MADE, TASK, Fault
from benchmarks.processes import run
from tests.fakes.scripted_server import ScriptedServer
from tests.fakes.state import ServerSettings

ROOT = Path(__file__).resolve().parents[1]
SESSION12 = ROOT / "benchmarks" / "results" / "session12.json"
_OF_SESSION12 = ("re-prefill ratio", "gap after a file tool", "gap after a shell tool, less the command")
_LIMITS = {"re-prefill ratio": 1.0, "gap after a file tool": 0.02}
_SHELL_LIMIT = 0.04


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one run ended. `strangers` are files that nobody asked for, `poisoned` what a request had wrong."""

    fault: str
    exit_code: int
    expected_exit_code: int
    requests: int
    made: bool
    strangers: tuple[str, ...]
    poisoned: str
    seconds: float
    right: bool


def poisoned(body: Mapping[str, Any]) -> str:
    """What strict servers and templates would refuse about the history of a request; empty if nothing."""
    messages = body["messages"]
    if [message["role"] for message in messages].count("system") != 1 or messages[0]["role"] != "system":
        return "not exactly one system message, first"
    open_calls: list[str] = []
    for message in messages:
        calls = message.get("tool_calls") or []
        if any(not _is_object(call["function"]["arguments"]) for call in calls):
            return "arguments that are no object"
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                return "a result without its call"
            open_calls.remove(message["tool_call_id"])
        elif open_calls:
            return "a call without a result"
        open_calls += [call["id"] for call in calls]
        if message["role"] == "assistant" and not calls and not message["content"].strip():
            return "an empty reply"
    return "a call without a result" if open_calls else ""


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def play(fault: Fault) -> Outcome:
    """One run of `agent` against a server that does what the fault says."""
    server = ScriptedServer(fault.script(), ServerSettings(**fault.server))
    try:
        with tempfile.TemporaryDirectory(prefix="recovery-") as folder:
            home = Path(folder)
            work = home / "work"
            work.mkdir()
            command = (sys.executable, "-m", "agent", "run", "-p", TASK, *fault.arguments)
            began = time.monotonic()
            environment = {**_environment(home, server.url), **fault.variables}
            cost = run(command, folder=work, environment=environment, scratch=home)
            seconds = time.monotonic() - began
            made = work / "made.txt"
            is_made = made.is_file() and made.read_text("utf-8") == MADE
            strangers = tuple(sorted(path.name for path in work.iterdir() if path != made))
        wrong = next(filter(None, (poisoned(chat.body) for chat in server.chats)), "")
        requests = len(server.chats)
    finally:
        server.close()
    right = cost.exit_code == fault.exit_code and is_made == fault.made and not strangers and not wrong
    return Outcome(
        fault=fault.name,
        exit_code=cost.exit_code,
        expected_exit_code=fault.exit_code,
        requests=requests,
        made=is_made,
        strangers=strangers,
        poisoned=wrong,
        seconds=round(seconds, 2),
        right=right,
    )


def _environment(home: Path, url: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    homes = {f"AGENT_{kind.upper()}_HOME": str(home / kind) for kind in ("config", "state", "data", "cache")}
    return {**kept, **homes, "HOME": str(home), "PYTHONPATH": str(ROOT), "AGENT_SERVER_URL": url}


def from_session12(path: Path = SESSION12) -> list[dict[str, Any]]:
    """The figures of the twelve steps that belong here, with their limits; empty where none are."""
    if not path.is_file():
        return []
    found = json.loads(path.read_text("utf-8"))
    rows = [row for row in found["summary"] if row["name"] in _OF_SESSION12]
    return [{**row, "limit": _LIMITS.get(row["name"], _SHELL_LIMIT), "date": found["date"]} for row in rows]


def table(outcomes: Sequence[Outcome], twelve: Sequence[Mapping[str, Any]]) -> str:
    """Both parts as Markdown."""
    lines = ["| fault | exit code | requests | file made | as it has to be |", "|---|---|---|---|---|"]
    for one in outcomes:
        verdict = "yes" if one.right else f"no: {_why(one)}"
        lines.append(
            f"| {one.fault} | {one.exit_code} | {one.requests} | {'yes' if one.made else 'no'} | {verdict} |"
        )
    lines.append(f"| all | | | | {sum(one.right for one in outcomes)} of {len(outcomes)} |")
    if twelve:
        lines += ["", "| session of twelve steps | native | constrained | at most |", "|---|---|---|---|"]
        for row in twelve:
            native, bound = (row["values"].get(name, 0.0) for name in ("native", "constrained"))
            lines.append(f"| {row['name']}, {row['unit']} | {native:.3f} | {bound:.3f} | {row['limit']:g} |")
    return "\n".join(lines)


def _why(one: Outcome) -> str:
    if one.exit_code != one.expected_exit_code:
        return f"exit code {one.expected_exit_code} expected"
    if one.strangers:
        return f"wrote {', '.join(one.strangers)}"
    return one.poisoned or "the file is not as it has to be"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="only faults with this text in their name")
    parser.add_argument("--output", type=Path, help="write everything to this JSON file")
    options = parser.parse_args()
    load = os.getloadavg()
    outcomes = [play(fault) for fault in FAULTS if options.only in fault.name]
    twelve = from_session12()
    print(table(outcomes, twelve))
    if options.output:
        result = {
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "load_average_before": [round(value, 2) for value in load],
            "right": sum(one.right for one in outcomes),
            "faults": [asdict(one) for one in outcomes],
            "session12": twelve,
        }
        options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if not all(one.right for one in outcomes):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
