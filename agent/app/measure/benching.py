"""`agent bench` from end to end: which servers, in which order, and what becomes of the figures."""

import asyncio
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from agent.app.interruption import ended_by_signals
from agent.app.measure.benched import ServedContestant, contestants
from agent.app.servers.serving import Serving, choose
from agent.bench import baseline as baselines
from agent.bench.figures import overall
from agent.bench.measure import DEFAULT_MAX_TOKENS, DEFAULT_TIMEOUT_SECONDS
from agent.bench.prompt import BenchPrompt
from agent.bench.report import ReportFolder, as_html, as_json, write_text
from agent.bench.result import BenchResult
from agent.bench.runner import Runner, RunPlan, Step
from agent.bench.suites import load_prompt_file, load_suite, selected
from agent.bench.table import table
from agent.config.load import LoadedSettings
from agent.core.errors import AgentError, ExitCode
from agent.resources import ensure_private_folder, state_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRequest:
    """What the command line asks for. `html` and `json` are files, `json` also `-` for stdout.

    With `fits_batch` a server reads with the batch that fits this machine, as in sessions, else with that of
    its profile.
    """

    profiles: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    api_key_env: str = ""
    against_plain: bool = False
    suites: tuple[str, ...] = ()
    prompt_files: tuple[Path, ...] = ()
    categories: tuple[str, ...] = ()
    limit: int | None = None
    runs: int = 3
    rounds: int = 2
    max_tokens: int | None = None
    temperature: float | None = None
    seed: int = 42
    greedy: bool = False
    stream: bool = True
    model: str = ""
    threads: int | None = None
    fits_batch: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    json: str = ""
    html: Path | None = None


def run_bench(
    request: BenchRequest,
    watch: Callable[[Step], None],
    say: Callable[[str], None],
    clear: Callable[[], None] = lambda: None,
    serve: Callable[[LoadedSettings], Serving] = choose,
) -> int:
    """Measures, writes the reports and prints the table; returns the exit code.

    Args:
        watch: is told each step, for a line of progress; `clear` takes that line away.
        say: prints a line for the person.
        serve: chooses the server of a profile.

    Raises:
        UsageError: a wrong profile, prompt file or combination, before anything is started.
        AgentError: a report cannot be written.
    """
    prompts = prompts_of(request)
    chosen = contestants(request, lambda event: watch(Step(event.state, event.detail, 0, 0)), serve)
    folder = ReportFolder.create(
        ensure_private_folder(state_folder()) / "bench", datetime.now().strftime("%Y%m%d-%H%M%S")
    )
    result = empty_result(request, prompts, chosen)
    try:
        asyncio.run(_measure_all(request, prompts, chosen, result, folder, watch))
    finally:
        # Also when a raw reply cannot be written: what was measured is shown before the error is.
        clear()
        _finish(request, result, folder, say)
    return exit_code(result)


def bench_briefly(
    request: BenchRequest,
    watch: Callable[[Step], None],
    say: Callable[[str], None],
    serve: Callable[[LoadedSettings], Serving] = choose,
) -> BenchResult:
    """Measures and remembers the speed, as `run_bench` does, without table and report.

    Raises:
        UsageError: as `run_bench`.
        AgentError: a raw reply cannot be written.
    """
    prompts = prompts_of(request)
    chosen = contestants(request, lambda event: watch(Step(event.state, event.detail, 0, 0)), serve)
    folder = ReportFolder.create(
        ensure_private_folder(state_folder()) / "bench", datetime.now().strftime("%Y%m%d-%H%M%S")
    )
    result = empty_result(request, prompts, chosen)
    asyncio.run(_measure_all(request, prompts, chosen, result, folder, watch))
    _remember(result, say)
    return result


def exit_code(result: BenchResult) -> int:
    """0 when every server was measured; interrupted, or the code of the first failure otherwise."""
    if result.is_interrupted:
        return int(ExitCode.INTERRUPTED)
    for report in result.servers:
        if report.failure:
            return report.failure_code
    return int(ExitCode.SERVER) if len(result.measured) < len(result.samples) else int(ExitCode.DONE)


async def _measure_all(
    request: BenchRequest,
    prompts: Sequence[BenchPrompt],
    chosen: Sequence[ServedContestant],
    result: BenchResult,
    folder: ReportFolder,
    watch: Callable[[Step], None],
) -> None:
    plan = RunPlan(
        prompts=prompts,
        runs=request.runs,
        rounds=request.rounds,
        together=_fit_together(chosen),
        seed=request.seed,
    )
    begin = time.monotonic()
    cancel = asyncio.Event()
    with ended_by_signals(cancel):
        work = asyncio.ensure_future(Runner(plan, chosen, result, watch=watch, keep=folder.keep).run())
        watcher = asyncio.ensure_future(cancel.wait())
        try:
            await asyncio.wait({work, watcher}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                result.is_interrupted = True
                work.cancel()
            await asyncio.gather(work, return_exceptions=result.is_interrupted)
        finally:
            watcher.cancel()
            result.seconds = time.monotonic() - begin


def _fit_together(chosen: Sequence[ServedContestant]) -> bool:
    """Whether all servers can be up at once: of those started here there is only one at a time."""
    return len({one.serving.fingerprint for one in chosen if one.serving.is_managed}) <= 1


def prompts_of(request: BenchRequest) -> tuple[BenchPrompt, ...]:
    suites = request.suites or (() if request.prompt_files else ("coding",))
    found: list[BenchPrompt] = []
    for more in (*map(load_suite, suites), *map(load_prompt_file, request.prompt_files)):
        taken = {prompt.id for prompt in found}
        found += [replace(one, id=_free(one.id, taken)) for one in more]
    return selected(found, categories=request.categories, limit=request.limit)


def _free(identity: str, taken: set[str]) -> str:
    names = (identity, *(f"{identity}-{number}" for number in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)


def empty_result(
    request: BenchRequest, prompts: Sequence[BenchPrompt], chosen: Sequence[ServedContestant]
) -> BenchResult:
    names = [*request.suites, *(path.name for path in request.prompt_files)] or ["coding"]
    return BenchResult(
        suite=" + ".join(names),
        started=datetime.now().astimezone().isoformat(timespec="seconds"),
        servers=[one.report for one in chosen],
        settings=_settings(request, prompts, _fit_together(chosen)),
        machine=machine_facts(),
        prompts=[(prompt.id, prompt.title, _as_text(prompt)) for prompt in prompts],
        notes=_notes(request, chosen),
        is_greedy=request.greedy,
    )


def _settings(request: BenchRequest, prompts: Sequence[BenchPrompt], together: bool) -> dict[str, Any]:
    limits = request.max_tokens or sorted({one.max_tokens or DEFAULT_MAX_TOKENS for one in prompts})
    return {
        "runs": request.runs,
        "order": "request by request in turns" if together else f"in turns, {request.rounds} rounds",
        "max_tokens": limits,
        "temperature": 0 if request.greedy else request.temperature or "of the suite (0.7 unless it says so)",
        "seed": request.seed,
        "stream": request.stream,
        "prompt cache": "off",
        "extra_inputs": dict(request.extra),
        "warm-up": "one request for each start of a server, not counted",
    }


def machine_facts() -> dict[str, Any]:
    """What a figure depends on. No name of the machine and of nobody who uses it."""
    import os
    import platform

    from agent import __version__
    from agent.server.hardware import detect_hardware

    found = detect_hardware(state_folder())
    facts: dict[str, Any] = {
        "processor": f"{found.cpu}, {found.physical_cores} cores",
        "memory": f"{found.ram_total / 2**30:.0f} GiB",
        "graphics": ", ".join(f"{gpu.name}, {gpu.total_bytes / 2**30:.0f} GiB" for gpu in found.gpus)
        or "none",
        "driver": ", ".join(sorted({gpu.driver for gpu in found.gpus if gpu.driver})) or "none",
        "system": f"{platform.system()} {platform.release()}",
        "agent": __version__,
    }
    if hasattr(os, "getloadavg"):
        facts["load before"] = round(os.getloadavg()[0], 2)
    return facts


def _notes(request: BenchRequest, chosen: Sequence[ServedContestant]) -> list[str]:
    """What a reader has to know to judge the figures."""
    import os

    notes = []
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load > cores / 2 and any(one.serving.is_managed for one in chosen):
        notes.append(
            f"note: the machine was busy when this began (load {load:.1f} on {cores} cores); "
            "the speeds are lower and scatter more than its own."
        )
    learners = [one.report.name for one in chosen if "ngram-mod" in one.serving.profile.speculation.kinds]
    if learners and request.runs > 1:
        remedy = "" if _fit_together(chosen) else f"; --rounds {request.runs} starts it anew for each run"
        notes.append(
            f"note: {', '.join(learners)}: ngram-mod also drafts from earlier replies of the same server, "
            f"so later runs of a prompt may gain from the first{remedy}."
        )
    return notes


def _as_text(prompt: BenchPrompt) -> str:
    if len(prompt.messages) == 1:
        return str(prompt.messages[0].get("content", ""))
    import json

    parts = []
    for message in prompt.messages:
        calls = message.get("tool_calls")
        parts.append(f"[{message['role']}]\n{message.get('content') or ''}")
        parts += [json.dumps(calls, indent=1, ensure_ascii=False)] if calls else []
    return "\n".join(parts)


def _finish(
    request: BenchRequest, result: BenchResult, folder: ReportFolder, say: Callable[[str], None]
) -> None:
    _remember(result, say)
    try:
        # The table first: it is what is left if the disk is full.
        print(table(result), end="", file=sys.stderr if request.json == "-" else sys.stdout, flush=True)
    finally:
        write_reports(request, result, folder)
    if request.json == "-":
        print(as_json(result), end="")
    if result.measured:
        say(f"report: {request.html or folder.path / 'report.html'}")
    if result.is_interrupted:
        say("interrupted")


def write_reports(request: BenchRequest, result: BenchResult, folder: ReportFolder) -> None:
    text = as_json(result)
    if request.json not in ("", "-"):
        write_text(Path(request.json).absolute(), text)
    write_text(folder.path / "result.json", text)
    if not result.measured:
        return
    html = as_html(result)
    if request.html:
        write_text(request.html.absolute(), html)
    write_text(folder.path / "report.html", html)


def _remember(result: BenchResult, say: Callable[[str], None]) -> None:
    """Stores what each server can do, if it was measured as a whole."""
    if result.is_interrupted:
        return
    file = state_folder() / baselines.FILE_NAME
    machine = result.machine["graphics"]
    machine = result.machine["processor"] if machine == "none" else machine
    for report in result.servers:
        row = overall(result, report.name)
        if report.failure or row is None or row.failed or not row.decode_rate or not report.baseline_key:
            continue
        one = baselines.Baseline(
            profile=report.name,
            suite=result.suite,
            decode_rate=round(row.decode_rate.median, 3),
            prompt_rate=round(row.prompt_rate.median, 3) if row.prompt_rate else None,
            speculation=report.speculation,
            accept_rate=row.accept_rate,
            machine=machine,
            samples=row.samples,
            measured_at=result.started,
        )
        try:
            baselines.store_baseline(file, report.baseline_key, one)
        except AgentError as error:
            say(error.message)
            return
