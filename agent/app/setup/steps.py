"""Does what was agreed to, step by step. Each step looks first whether it is done: all can be repeated."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol

from agent.app.servers.serving import Serving, choose
from agent.app.setup.option import Option
from agent.app.setup.writing import (
    forget_unfinished,
    link_file,
    note_unfinished,
    write_remote_profile,
    write_settings,
)
from agent.bench.baseline import FILE_NAME, Baseline, baseline_for, key_of
from agent.config.load import LoadedSettings, load_settings
from agent.core.errors import AgentError, ModelFileError
from agent.core.events import ServerState
from agent.resources import cache_folder, servers_folder, state_folder
from agent.server.install import Workplace, install, release_for
from agent.server.record import Endpoint
from agent.server.sources import Means

StepName = Literal["install", "pull", "start", "measure", "write"]
StepState = Literal["done", "there", "failed"]
MEASURED_TOKENS = 96
_MEASURED_RUNS = 2


class Line(Protocol):
    """A line of progress, see `agent.cli.progress.ProgressLine`."""

    def show(self, text: str, essence: str | None = None) -> None: ...

    def end(self, text: str = "") -> None: ...


@dataclass(frozen=True, slots=True)
class StepResult:
    """`state`: "there" = nothing had to be done, "failed" = left out, and the set-up is usable without."""

    name: StepName
    state: StepState
    detail: str


@dataclass(slots=True, kw_only=True)
class SetupRun:
    """One set-up at work. `current` is the step that is being done, for the person who interrupts it."""

    option: Option
    environment: Mapping[str, str]
    line: Line
    project: Path | None = None
    serve: Callable[[LoadedSettings], Serving] = choose
    workplace: Workplace | None = None
    means: Means | None = None
    results: list[StepResult] = field(default_factory=list)
    current: StepName | None = None
    endpoint: Endpoint | None = None
    speed: Baseline | None = None

    def run(self) -> None:
        """Does everything. Blocks; KeyboardInterrupt comes through, and what was done until then is kept.

        Raises:
            AgentError: a step cannot be done.
        """
        note_unfinished(self.option.profile, self.environment)
        steps: dict[StepName, Callable[[], tuple[StepState, str]]] = {
            "install": self._install,
            "pull": self._pull,
            "start": self._start,
            "measure": self._measure,
            "write": self._write,
        }
        for name, step in steps.items():
            with self._step(name):
                state, detail = step()
                self.results.append(StepResult(name, state, detail))
                self.line.end(f"{name}: {detail}")
        forget_unfinished(self.environment)

    @contextmanager
    def _step(self, name: StepName) -> Iterator[None]:
        self.current = name
        try:
            yield
        finally:
            self.line.end()
        self.current = None

    def _loaded(self, **flags: object) -> LoadedSettings:
        chosen = {"profile": self.option.profile, "server.url": "", **flags}
        return load_settings(self.project, self.environment, chosen)

    def _install(self) -> tuple[StepState, str]:
        build = self.option.build
        if build is None:
            return "there", f"{self.option.program} is there"
        if build.wish is None:
            return "done", f"the embedded engine, xllamacpp {self._install_engine()}"
        place = self.workplace or Workplace(
            servers_folder=servers_folder(self.environment),
            work_folder=cache_folder(self.environment) / "builds",
        )
        result = install(
            build.wish,
            release_for(build.wish),
            place,
            lambda step: self.line.show(
                f"{step.stage} {100 * step.done // step.total if step.total else 0} % {step.detail}",
                f"{step.stage} {10 * step.done // step.total if step.total else step.detail}",
            ),
        )
        return "done", f"{result.key} in {result.folder}"

    def _install_engine(self) -> str:
        import tempfile

        from agent.server.engine_extra import Environment, install_engine

        with tempfile.TemporaryFile() as log:
            return install_engine(
                Environment(), log, self.environment, lambda text: self.line.show(text.strip())
            )

    def _pull(self) -> tuple[StepState, str]:
        from agent.server.download import obtain

        if self.option.runs_elsewhere:
            return "there", "its server has its own model"
        loaded = self._loaded()
        models = loaded.settings.models
        fetched = []
        for file in self.serve(loaded).profile.model_files:
            needed = next((one for one in self.option.files if one.name == Path(file.file).name), None)
            place = file.path_in(models.folder)
            if needed is not None and needed.found is not None and not place.exists():
                link_file(needed.found, place)
                fetched.append(f"{place.name} (linked)")
            if not place.exists():
                fetched.append(place.name)

            def report(done: int, total: int, label: str, name: str = place.name) -> None:
                percent = 100 * done // total if total else 0
                self.line.show(
                    f"{name}: {percent} %, {done / 1e6:.0f} of {total / 1e6:.0f} MB, {label}",
                    f"{name} {percent // 10} {label.partition(' ')[0]}",
                )

            try:
                obtain(file, models.folder, order=models.sources, progress=report, means=self.means)
            except ModelFileError:
                if needed is not None and needed.found is not None and place.is_symlink():
                    place.unlink()  # the other program's file is not the right one
                raise
        if not fetched:
            return "there", "all model files are there" if self.option.files else "needs no model file"
        return "done", ", ".join(fetched)

    def _start(self) -> tuple[StepState, str]:
        written = write_remote_profile(self.option, self.environment)
        serving = self.serve(self._loaded())
        was_running = serving.running() is not None

        def show(event: ServerState) -> None:
            if event.state == "warning":
                self.line.end(f"warning: {event.detail}")
            else:
                self.line.show(f"{event.state} {event.elapsed_seconds:.0f} s: {event.detail}", event.detail)

        self.endpoint = asyncio.run(serving.endpoint(show))
        context = f", context {self.endpoint.context_tokens} tokens" if self.endpoint.context_tokens else ""
        where = f"{self.endpoint.base_url}{context}"
        if not serving.is_managed:
            return "done", f"uses {where}" + (f"; its profile is {written}" if written else "")
        return ("there" if was_running else "done"), f"{self.option.profile} answers at {where}"

    def _measure(self) -> tuple[StepState, str]:
        if self.endpoint is None:
            return "failed", "no server to measure"
        file = state_folder(self.environment) / FILE_NAME
        self.speed = baseline_for(key_of(self.endpoint), file)
        if self.speed is not None:
            return "there", f"{_rate(self.speed)}, measured on {self.speed.measured_at[:10]}"
        try:
            problem = self._bench()
        except (AgentError, OSError) as error:
            return "failed", f"not measured: {getattr(error, 'message', error)}"
        self.speed = baseline_for(key_of(self.endpoint), file)
        if self.speed is None:
            return "failed", f"not measured: {problem or 'the server gave no figures'}"
        return "done", f"{_rate(self.speed)} with a short piece of code; `agent bench` measures it thoroughly"

    def _bench(self) -> str:
        """Measures a few tokens; returns why that did not work, if it did not."""
        from agent.app.measure.benching import BenchRequest, bench_briefly

        request = BenchRequest(
            profiles=(self.option.profile,),
            limit=1,
            runs=_MEASURED_RUNS,
            rounds=1,
            max_tokens=MEASURED_TOKENS,
            fits_batch=True,
        )
        result = bench_briefly(
            request,
            lambda step: self.line.show(f"{step.what} {step.seconds:.0f} s", step.what),
            self.line.end,
            lambda loaded: self.serve(_left_running(loaded)),
        )
        if result.is_interrupted:
            raise KeyboardInterrupt
        errors = [sample.error for sample in result.samples if sample.error]
        return next((report.failure for report in result.servers if report.failure), "") or next(
            iter(errors), ""
        )

    def _write(self) -> tuple[StepState, str]:
        path = write_settings(self.option, load_settings(None, self.environment, {}), self.environment)
        return "done", f'profile = "{self.option.profile}" in {path}'


def _left_running(loaded: LoadedSettings) -> LoadedSettings:
    """A benchmark stops what it started; here the server is to stay for the session that follows."""
    server = loaded.settings.server.model_copy(update={"reuse": True})
    return replace(loaded, settings=loaded.settings.model_copy(update={"server": server}))


def _rate(speed: Baseline) -> str:
    accepted = f", {speed.accept_rate:.0%} of the drafted tokens accepted" if speed.accept_rate else ""
    return f"{speed.decode_rate:.1f} tok/s{accepted}"
