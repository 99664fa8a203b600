"""What a change to a file that is in the context costs: as a replaced text, or as the whole file again.

The model cannot choose here: a grammar allows nothing but the right reply, so each form is measured with the
same outcome, and a model that would get one of them wrong does not spoil the figure. Drafting works as ever:
a draft is accepted where it is what the grammar leaves. Seconds are the server's own processor time: with one
thread that is what a machine would need that does nothing else.

    taskset -c 1 python -m benchmarks.edit_forms --output benchmarks/results/edit_forms.json
"""

import argparse
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent.resources import profiles_folder
from agent.server.loopback import request_json
from agent.server.profile_files import load_profile
from agent.server.record import Endpoint
from tests.real.rig import serving

_PATIENCE_SECONDS = 1800.0
_FUNCTION = '''def convert_{n}(value: float, factor: float = {n}.5) -> float:
    """Converts a reading of sensor {n}."""
    if value < 0:
        raise ValueError("sensor {n} reads below zero")
    return round(value * factor, {digits})


'''


@dataclass(frozen=True, slots=True)
class Case:
    """A file and a change to one of its lines, in the middle."""

    lines: int
    before: str
    after: str
    old: str
    new: str


def case_of(functions: int) -> Case:
    """A file of so many functions; one number in the middle one is to be changed."""
    text = "".join(_FUNCTION.format(n=n, digits=n % 5) for n in range(1, functions + 1)).rstrip("\n") + "\n"
    middle = (functions + 1) // 2
    old = f'        raise ValueError("sensor {middle} reads below zero")\n'
    new = f'        raise ValueError(f"sensor {middle} reads {{value}}, below zero")\n'
    return Case(text.count("\n"), text, text.replace(old, new), old, new)


def replies(case: Case) -> Iterator[tuple[str, str]]:
    """The name of each form and the reply that makes the change in it."""
    call = {"tool": "edit", "path": "sensors.py", "old": case.old, "new": case.new}
    yield "replace", json.dumps(call)
    yield "whole", f"{json.dumps({'tool': 'write', 'path': 'sensors.py'})}\n```python\n{case.after}```\n"


def only(text: str) -> str:
    """A grammar that allows nothing but `text`."""
    return f"root ::= {json.dumps(text)}\n"


def ask(endpoint: Endpoint, body: Any) -> Any:
    """The answer to a chat request, however long it takes."""
    port = int(endpoint.base_url.rpartition(":")[2])
    path = "/v1/chat/completions"
    status, answer = request_json(port, "POST", path, endpoint.api_key, body, timeout=_PATIENCE_SECONDS)
    if status != 200:
        raise SystemExit(f"the server refused: {answer}")
    return answer


def processor_seconds(endpoint: Endpoint) -> float:
    import psutil

    times = psutil.Process(endpoint.pid).cpu_times()
    return times.user + times.system


def measured(endpoint: Endpoint, case: Case, reply: str) -> dict[str, Any]:
    """One forced reply to a prompt that was read before, in seconds of processor time."""
    task = f"sensors.py:\n```python\n{case.before}```\nSay in the error of the middle sensor what it reads."
    body: dict[str, Any] = {
        "messages": [{"role": "system", "content": "You change files."}, {"role": "user", "content": task}],
        "cache_prompt": True,
    }
    ask(endpoint, {**body, "max_tokens": 1})
    forced = {**body, "grammar": only(reply), "temperature": 0, "max_tokens": 4096}
    begin = processor_seconds(endpoint)
    answer = ask(endpoint, forced)
    seconds = processor_seconds(endpoint) - begin
    if answer["choices"][0]["message"]["content"].strip() != reply.strip():
        raise SystemExit("the server did not give the reply that the grammar asks for")
    timings = answer["timings"]
    return {
        "tokens": timings["predicted_n"],
        "seconds": round(seconds, 2),
        "wall_seconds": round(timings["predicted_ms"] / 1000, 2),
        "drafted": timings.get("draft_n", 0),
        "accepted": timings.get("draft_n_accepted", 0),
    }


def table(rows: list[dict[str, Any]]) -> str:
    lines = ["| file | drafting | replace | whole file | whole ÷ replace |", "|---|---|---|---|---|"]
    for row in rows:
        replace, whole = row["replace"], row["whole"]
        lines.append(
            f"| {row['lines']} lines | {row['drafting']} | {replace['tokens']} tokens, {replace['seconds']} s"
            f" | {whole['tokens']} tokens, {whole['seconds']} s, {whole['accepted']} accepted"
            f" | {row['ratio']} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", default="embedded")
    parser.add_argument("--functions", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    drafting = load_profile(options.profile, [profiles_folder()]).speculation.model_dump(exclude_unset=True)
    rows: list[dict[str, Any]] = []
    for speculation in (drafting, {"kind": "none"}):
        with (
            tempfile.TemporaryDirectory() as folder,
            serving(options.profile, Path(folder), options.threads, speculation=speculation) as endpoint,
        ):
            for functions in options.functions:
                case = case_of(functions)
                found = {name: measured(endpoint, case, reply) for name, reply in replies(case)}
                ratio = round(found["whole"]["seconds"] / found["replace"]["seconds"], 2)
                rows.append({"lines": case.lines, "drafting": speculation["kind"], "ratio": ratio, **found})
                print(json.dumps(rows[-1]), flush=True)
    result = {
        "profile": options.profile,
        "threads": options.threads,
        "load": round(os.getloadavg()[0], 2),
        "taken": datetime.now(UTC).isoformat(timespec="seconds"),
        "rows": rows,
    }
    if options.output:
        options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(table(rows))


if __name__ == "__main__":
    main()
