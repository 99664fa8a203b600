"""`agent tune` from end to end: serves candidates, measures them, and writes what has won as a profile."""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent.app.interruption import ended_by_signals
from agent.app.measure import tuning_report as report
from agent.app.measure.benching import machine_facts
from agent.app.measure.tuned_profile import target_file, tuned_text, write_profile
from agent.app.measure.tuning_space import DIMENSIONS, Space, describe
from agent.app.servers.fitting import as_written
from agent.app.servers.serving import Serving, choose
from agent.bench.measure import MeasureOptions, measure
from agent.bench.prompt import BenchPrompt
from agent.bench.report import write_text
from agent.bench.suites import load_suite, selected
from agent.bench.trial import Changes, Reading, Visit, reading_of
from agent.bench.tune import Enough, Search
from agent.config.load import LoadedSettings, find_project_root, load_settings
from agent.core.errors import AgentError, ExitCode, ServerError, UsageError
from agent.core.events import ServerState
from agent.resources import ensure_private_folder, state_folder
from agent.server.fingerprint import fingerprint

WARM_UP = BenchPrompt.of_text("Count from one to twenty in words.", "warm-up", "warm-up")
"""Not one of the prompts: what was drafted from the context once is drafted from it again."""
_WARM_UP_TOKENS = 16
_SEED = 42


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneRequest:
    """What the command line asks for. `minutes` is the budget, `reply_tokens` the length of each reply.

    `only` names what is varied, empty for what suits the suite. `command` is what the person typed.
    """

    profile: str = ""
    minutes: float = 30.0
    only: tuple[str, ...] = ()
    suite: str = "coding"
    limit: int | None = None
    reply_tokens: int = 256
    threads: int | None = None
    save_as: str = ""
    json: bool = False
    command: str = "agent tune"

    @property
    def dimensions(self) -> tuple[str, ...]:
        """What is varied. Batch sizes only change how long prompts are read, and most prompts are short."""
        chosen = self.only or tuple(name for name in DIMENSIONS if name != "batch" or self.suite == "agent")
        return tuple(name for name in chosen if name != "threads" or not self.threads)


@dataclass(slots=True)
class ServerLab:
    """Measures candidates on servers that it starts, see `agent.bench.tune.Lab`.

    Each candidate gets a server of its own: some kinds of speculation learn from earlier replies. The seed
    follows how often a candidate was measured, so that runs of it differ as a person's do.
    """

    serving: Serving
    space: Space
    prompts: Sequence[BenchPrompt]
    options: MeasureOptions
    tell: Callable[[Changes, str], None]
    times: dict[Changes, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    async def measure(self, changes: Changes, enough: Enough) -> Sequence[Reading]:
        """Raises AgentError: the server does not start, or fails."""
        serving = self._serving(changes)

        def report_state(event: ServerState) -> None:
            self.tell(changes, f"{event.state} {event.detail}".strip())

        number = self.times.get(changes, 0)
        self.times[changes] = number + 1
        endpoint = await serving.endpoint(report_state)
        readings: list[Reading] = []
        try:
            self.tell(changes, "warming up")
            await measure(endpoint, WARM_UP, replace(self.options, max_tokens=_WARM_UP_TOKENS))
            for prompt in self.prompts:
                self.tell(changes, prompt.id)
                found = await measure(endpoint, prompt, replace(self.options, seed=_SEED + number))
                reading = reading_of(found, self.options.max_tokens or found.decoded_tokens)
                if reading is None:
                    raise ServerError(f"the reply to {prompt.id} is too short to tell a speed")
                readings.append(reading)
                if enough(readings):
                    break
        except ServerError as error:
            ended = serving.why_it_ended(endpoint)
            if ended is None:
                raise
            raise ended from error
        finally:
            # An interruption in just this moment must not leave the server behind.
            problem = await _to_its_end(serving.release(endpoint))
            if problem:
                self.problems.append(f"{describe(changes)}: {problem}")
        return readings

    def _serving(self, changes: Changes) -> Serving:
        profile = self.space.profile(changes)
        settings = self.serving.loaded.settings
        mark = fingerprint(profile, settings.models.folder, settings.server.threads, settings.server.binary)
        return as_written(replace(self.serving, profile=profile, fingerprint=mark))


def run_tune(
    request: TuneRequest,
    tell: Callable[[str, str], None],
    say: Callable[[str], None],
    offer: Callable[[str], bool] = lambda question: False,
) -> int:
    """Searches, shows what is found, and writes the winner; returns the exit code.

    Args:
        tell: is told what is being done, for a line of progress, and its essence.
        say: prints a line for the person.
        offer: asks whether what was found before an interruption shall be written.

    Raises:
        UsageError: a wrong profile, name or combination, before anything is started.
        AgentError: the base cannot be measured, or nothing can be written.
    """
    job = _job(request, choose(_settings(request)), tell)
    _show_rows(job.search, say)
    is_interrupted = False
    try:
        is_interrupted = asyncio.run(_until_done(job.search))
    finally:
        table = job.as_table(is_interrupted)
        kept = _keep(table) if job.search.visits else None
    for line in [*job.lab.problems, *report.closing_lines(job.search, is_interrupted)]:
        say(line)
    written = _is_wanted(job.search, is_interrupted, job.path, offer, say)
    if written:
        job.write()
        say(f"written: {job.path}; use it with `agent --profile {job.path.stem}`")
    if kept:
        say(f"everything that was measured: {kept}")
    if request.json:
        print(json.dumps({**table, "written": str(job.path) if written else None}, indent=1))
    return int(ExitCode.INTERRUPTED if is_interrupted else ExitCode.DONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """One search with what its evidence needs."""

    request: TuneRequest
    base: str
    profile_name: str
    path: Path
    space: Space
    lab: ServerLab
    search: Search
    machine: dict[str, Any]
    settings: dict[str, Any]
    when: str

    def as_table(self, is_interrupted: bool) -> dict[str, Any]:
        return report.as_table(
            self.search,
            self.profile_name,
            self.request.command,
            self.when,
            self.space.left_out,
            machine=self.machine,
            settings=self.settings,
            interrupted=is_interrupted,
        )

    def write(self) -> None:
        """Raises AgentError: it cannot be written."""
        best = self.search.best
        extends = str(Path(self.base).expanduser().absolute()) if self.base.endswith(".toml") else self.base
        told = report.evidence(
            self.search,
            self.profile_name,
            {"date": self.when, "command": self.request.command, **self.machine, **self.settings},
        )
        profile = self.space.profile(best)
        write_profile(self.path, tuned_text(profile, extends, best, told), profile)


def _job(request: TuneRequest, serving: Serving, tell: Callable[[str, str], None]) -> _Job:
    if not serving.is_managed:
        raise UsageError(
            f"{serving.profile.name} runs elsewhere, so it cannot be started with other settings",
            "tune a profile whose server is started here",
        )
    base = request.profile or serving.loaded.settings.profile
    path = target_file(request.save_as or f"{serving.profile.name}-tuned", base)
    space = _space(serving, request)
    prompts = selected(load_suite(request.suite), limit=request.limit)
    lab = ServerLab(serving, space, prompts, _options(request, serving), _teller(tell))
    return _Job(
        request=request,
        base=base,
        profile_name=serving.profile.name,
        path=path,
        space=space,
        lab=lab,
        search=Search(lab, space.dimensions(request.dimensions), 60 * request.minutes),
        machine=machine_facts(),
        settings={
            "suite": request.suite,
            "prompts": ", ".join(prompt.id for prompt in prompts),
            "tokens of each reply": request.reply_tokens,
            "budget in minutes": request.minutes,
            "varied": ", ".join(request.dimensions),
        },
        when=datetime.now(UTC).isoformat(timespec="seconds"),
    )


async def _to_its_end(work: Coroutine[Any, Any, str]) -> str:
    """The result. A cancel has to wait until then."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


async def _until_done(search: Search) -> bool:
    """Whether it was interrupted. What was measured until then is kept."""
    cancel = asyncio.Event()
    with ended_by_signals(cancel):
        work = asyncio.ensure_future(search.run())
        watcher = asyncio.ensure_future(cancel.wait())
        try:
            await asyncio.wait({work, watcher}, return_when=asyncio.FIRST_COMPLETED)
            is_interrupted = not work.done()
            if is_interrupted:
                work.cancel()
            await asyncio.gather(work, return_exceptions=is_interrupted)
        finally:
            watcher.cancel()
    return is_interrupted


def _is_wanted(
    search: Search, is_interrupted: bool, path: Path, offer: Callable[[str], bool], say: Callable[[str], None]
) -> bool:
    if not search.best:
        return False
    if search.is_confirmed and not is_interrupted:
        return True
    if not is_interrupted:
        say("No profile is written. A longer search (--minutes) may tell more.")
        return False
    sure = "" if search.is_confirmed else " (not confirmed)"
    if offer(f"Write the best so far{sure} to {path}?"):
        return True
    say("No profile is written.")
    return False


def _settings(request: TuneRequest) -> LoadedSettings:
    flags: dict[str, Any] = {"server.threads": request.threads, "server.reuse": False}
    # An address in the settings would send every candidate to the same server.
    flags |= {"profile": request.profile, "server.url": ""} if request.profile else {}
    return load_settings(find_project_root(Path.cwd()), os.environ, flags)


def _space(serving: Serving, request: TuneRequest) -> Space:
    from agent.server.launch import automatic_threads, container_limit

    fixed = serving.loaded.settings.server.threads
    if fixed and not request.threads and "threads" in request.only:
        raise UsageError(
            f"server.threads = {fixed} in your settings holds for every profile",
            "take it out of the settings to find the best number, or leave threads out of --only",
        )
    usable = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    # With a number in the settings there is nothing to vary: it comes before that of any profile.
    most = 0 if fixed else min(usable, container_limit() or usable)
    return Space(serving.profile, serving.capabilities(), automatic_threads(), most)


def _options(request: TuneRequest, serving: Serving) -> MeasureOptions:
    sampling = serving.profile.sampling.model_dump(exclude_none=True)
    return MeasureOptions(
        max_tokens=request.reply_tokens,
        temperature=sampling.pop("temperature", None),
        model=serving.profile.model or "local",
        sampling=sampling,
    )


def _teller(tell: Callable[[str, str], None]) -> Callable[[Changes, str], None]:
    def told(changes: Changes, what: str) -> None:
        name = describe(changes)
        tell(f"{name}: {what}", name)

    return told


def _show_rows(search: Search, say: Callable[[str], None]) -> None:
    def watch(visit: Visit) -> None:
        if len(search.visits) == 1:
            say(report.HEADER.rstrip())
        say(report.row(visit, len(search.visits)))

    search.watch = watch


def _keep(table: dict[str, Any]) -> Path | None:
    """Everything as JSON in the state folder; None where it cannot be written."""
    try:
        folder = ensure_private_folder(ensure_private_folder(state_folder()) / "tune")
        path = folder / f"{datetime.now().strftime('%Y%m%d-%H%M%S')}.json"
        write_text(path, json.dumps(table, indent=1) + "\n")
    except AgentError:
        return None
    return path
