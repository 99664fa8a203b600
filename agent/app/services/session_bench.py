"""`/bench`: measures the server of a live session, between two turns, and tells each figure as it comes.

It is the measurement of `agent bench` in small: each prompt of a suite once, and replies that are cut short.
Its figures are not remembered as what this server can do, because the session has used it before.
"""

import asyncio
import shlex
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agent.app.chat.engine import Engine, why_gone
from agent.app.chat.live import LiveSession
from agent.app.measure.benched import ServedContestant
from agent.app.measure.benching import BenchRequest, empty_result, prompts_of, write_reports
from agent.app.servers.carded import completed_profile
from agent.app.servers.foreign import template_arguments
from agent.bench.figures import Row, Spread, rows_by_prompt
from agent.bench.measure import MeasureOptions
from agent.bench.prompt import BenchPrompt
from agent.bench.report import ReportFolder
from agent.bench.result import BenchResult, ServerReport
from agent.bench.runner import Runner, RunPlan, Step
from agent.bench.table import remarks
from agent.core.cancel import InterruptedRunError, unless_cancelled
from agent.core.errors import AgentError, UsageError
from agent.core.events import OWN_CALL, ToolFinished, ToolOutcome, ToolOutput, ToolStarted
from agent.resources import ensure_private_folder, state_folder
from agent.server.record import Endpoint

BRIEF_TOKENS = 256
_NUMBERS = ("runs", "max-tokens", "limit")
_OPTIONS = "--suite NAME, --runs N, --max-tokens N, --limit N"


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRun:
    """How a measurement in a session ended; `text` is its table. `call_id` is that of its events."""

    call_id: str
    outcome: ToolOutcome
    text: str


@dataclass(slots=True)
class _InUse(ServedContestant):
    """The server of the session, which is there already and stays."""

    async def open(self) -> Endpoint:
        if self.endpoint is None:
            raise AgentError("the session has no server")
        return self.endpoint

    async def close(self) -> None:
        return

    def why_it_ended(self, endpoint: Endpoint) -> AgentError | None:
        return self.serving.why_it_ended(endpoint)


def request_of(options: str) -> BenchRequest:
    """Raises UsageError: an option that is not known here, or that is no number."""
    try:
        words = shlex.split(options.replace("=", " "))
    except ValueError as error:
        raise UsageError(f"the options of bench cannot be read: {error}", _OPTIONS) from None
    values: dict[str, str] = {}
    for name, value in zip(words[::2], [*words[1::2], ""], strict=False):
        known = name.removeprefix("--")
        if known not in (*_NUMBERS, "suite") or not name.startswith("--"):
            raise UsageError(f"bench inside of a session has no option {name}", _OPTIONS)
        if not value or (known in _NUMBERS and not (value.isdecimal() and int(value))):
            raise UsageError(f"{name} needs a {'number' if known in _NUMBERS else 'name'}", _OPTIONS)
        values[known] = value
    return BenchRequest(
        suites=(values["suite"],) if "suite" in values else (),
        runs=int(values.get("runs", 1)),
        max_tokens=int(values.get("max-tokens", BRIEF_TOKENS)),
        limit=int(values["limit"]) if "limit" in values else None,
    )


async def bench_in_session(live: LiveSession, options: str) -> BenchRun:
    """Runs it with the events of a tool call; `cancel` of the session ends it. No turn may be under way.

    Raises:
        UsageError: wrong options.
        AgentError: there is no server, or no report can be written.
    """
    request = request_of(options)
    prompts = await asyncio.to_thread(prompts_of, request)
    stop = asyncio.Event()
    live.commands.add(stop)
    call_id = f"{OWN_CALL}{uuid.uuid4().hex[:12]}"
    began = time.monotonic()
    outcome: ToolOutcome = "error"
    text = "The measurement came to nothing."
    names = {"prompts": len(prompts), "runs": request.runs, "max_tokens": request.max_tokens}
    live.emit(ToolStarted(call_id=call_id, tool="bench", arguments=names))
    try:
        engine = await unless_cancelled(live.keeper.ready(), stop)
        text, failed = await _measured(
            live,
            engine,
            request,
            prompts,
            stop,
            lambda line: live.emit(ToolOutput(call_id=call_id, text=f"{line}\n")),
        )
        outcome = "cancelled" if stop.is_set() else "error" if failed else "ok"
    except InterruptedRunError:
        outcome, text = "cancelled", "Interrupted before anything was measured."
    except AgentError as error:
        text = str(error)
        raise
    finally:
        live.commands.discard(stop)
        seconds = round(time.monotonic() - began, 2)
        live.emit(ToolFinished(call_id=call_id, tool="bench", outcome=outcome, text=text, seconds=seconds))
    return BenchRun(call_id=call_id, outcome=outcome, text=text)


async def _measured(
    live: LiveSession,
    engine: Engine,
    request: BenchRequest,
    prompts: Sequence[BenchPrompt],
    stop: asyncio.Event,
    say: Callable[[str], None],
) -> tuple[str, bool]:
    """The table, and whether nothing could be measured."""
    serving = engine.serving
    options = MeasureOptions(
        max_tokens=request.max_tokens,
        model=serving.profile.model or engine.endpoint.model or "local",
        sampling=serving.profile.sampling.model_dump(exclude_none=True, exclude={"temperature"}),
        template_arguments=template_arguments(engine.endpoint, completed_profile(serving, engine.endpoint)),
    )
    report = ServerReport(
        name=serving.profile.name, speculation=" + ".join(serving.profile.speculation.kinds) or "none"
    )
    server = _InUse(serving, report, options, endpoint=engine.endpoint)
    result = await asyncio.to_thread(empty_result, request, prompts, [server])
    folder = await asyncio.to_thread(
        lambda: ReportFolder.create(
            ensure_private_folder(state_folder()) / "bench", datetime.now().strftime("%Y%m%d-%H%M%S")
        )
    )
    plan = RunPlan(prompts=prompts, runs=request.runs, together=True, seed=request.seed)
    runner = Runner(plan, [server], result, watch=_Told(say, result).step, keep=folder.keep)
    began = time.monotonic()
    try:
        await unless_cancelled(runner.run(), stop)
    except InterruptedRunError:
        result.is_interrupted = True
    result.seconds = time.monotonic() - began
    if report.failure:
        report.failure = why_gone(serving, engine.endpoint, report.failure)
    await asyncio.to_thread(write_reports, request, result, folder)
    lines = [*brief_table(rows_by_prompt(result)), *remarks(result)]
    if result.measured:
        lines.append(f"report: {folder.path / 'report.html'}")
        lines += _rereading(live, engine)
    return "\n".join(lines), not result.measured


def _rereading(live: LiveSession, engine: Engine) -> list[str]:
    """What the measurement costs the conversation: the prompt that the server had is gone."""
    rate = live.turns.prefill_rate(live.keeper.serving.profile.name)
    if not live.used_tokens or engine.endpoint.slots > 1:
        return []
    seconds = f", about {live.used_tokens / rate:.0f} s" if rate else ""
    return [f"The next message may read the conversation anew: {live.used_tokens:,} tokens{seconds}."]


class _Told:
    """Says each new step and each figure once, though the runner tells of every token."""

    def __init__(self, say: Callable[[str], None], result: BenchResult) -> None:
        self._say = say
        self._result = result
        self._told = 0
        self._what = ""

    def step(self, step: Step) -> None:
        for sample in self._result.samples[self._told :]:
            self._told += 1
            found = sample.measurement
            speed = f"{found.decode_rate:.1f} tok/s" if found and found.decode_rate else sample.error
            self._say(f"  {speed or 'no figure'}")
        if step.what != self._what:
            self._what = step.what
            counted = f"{step.done + 1}/{step.total} " if "run " in step.what else ""
            self._say(f"{counted}{step.what}")


_HEADER = ("prompt", "tok/s", "prefill", "accepted", "a pass", "seconds")


def brief_table(rows: Iterable[Row]) -> list[str]:
    """Medians in few columns, so that they fit into a conversation."""
    cells = [_HEADER, *(_cells(row) for row in rows)]
    if len(cells) == 1:
        return ["nothing was measured"]
    widths = [max(len(line[at]) for line in cells) for at in range(len(_HEADER))]
    return [
        "  ".join(
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in cells
    ]


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.label,
        _median(row.decode_rate),
        _median(row.prompt_rate),
        "-" if row.accept_rate is None else f"{100 * row.accept_rate:.0f} %",
        "-" if row.mean_length is None else f"{row.mean_length:.1f}",
        _median(row.latency),
    )


def _median(spread: Spread | None) -> str:
    return "-" if spread is None else f"{spread.median:,.1f}"


def options_in(arguments: Mapping[str, Any]) -> str:
    """Raises UsageError: they are no text."""
    options = arguments.get("options") or ""
    if not isinstance(options, str):
        raise UsageError("the options of bench are one text", _OPTIONS)
    return options
