"""Formats and checks the files of one session after each edit."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from agent.core.command import Output, exit_text, run_shell
from agent.core.confinement import Confinement, Unconfined
from agent.core.outside_text import one_line
from agent.edits.findings import Finding, findings_in, has_places, new_findings
from agent.edits.spec import EditCommand, EditStep

MOST_OUTPUT_BYTES = 64 * 1024
TIMEOUTS_ALLOWED = 3
_CANNOT_START = (126, 127)

WriteFile = Callable[[Path, bytes], None]
"""Replaces a file in one step; raises OSError."""


@dataclass(frozen=True, slots=True)
class Formatted:
    """What formatters did to a file: the labels of those that changed it, and what they found wrong in it."""

    by: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Checked:
    """New findings of one check."""

    label: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class _End:
    code: int
    findings: tuple[Finding, ...]
    said: str


@dataclass(frozen=True, slots=True)
class _Known:
    """What a check found in the content with this sha256."""

    content: str
    findings: tuple[Finding, ...]


@dataclass(slots=True, kw_only=True)
class EditRunner:
    """Made once per session.

    A command that fails, hangs or is not there never spoils an edit: `notify` takes a line about it, and one
    that is not there, or hangs three times, is left out for the rest of the session. `local_programs` are
    folders with programs of the project, empty unless it is trusted.
    """

    steps: Sequence[EditStep]
    workspace: Path
    environment: Callable[[], Mapping[str, str]]
    notify: Callable[[str], None]
    write: WriteFile
    local_programs: Sequence[str] = ()
    confinement: Confinement = field(default_factory=Unconfined)
    _left_out: set[str] = field(default_factory=set)
    _timeouts: dict[str, int] = field(default_factory=dict)
    _complained: set[str] = field(default_factory=set)
    _known: dict[tuple[str, str], _Known] = field(default_factory=dict)
    _tidy: dict[str, str] = field(default_factory=dict)

    async def before(self, path: Path) -> None:
        """Notes what is wrong with a file already, so that only what is new is told later."""
        content = _fingerprint(path)
        for step, name in self._steps_for(path):
            if step.check is not None:
                await self._know(step, step.check, path, name, content)
            if step.probe is not None and content and self._tidy.get(name) != content:
                end = await self._run(step, step.probe, name)
                if end is not None and end.code == 0:
                    self._tidy[name] = content

    async def format(self, path: Path, *, is_new: bool) -> Formatted:
        """Lets the formatters at a file that was just edited. One that breaks it is undone."""
        by: list[str] = []
        findings: list[Finding] = []
        for step, name in self._steps_for(path):
            if step.format is None or (step.probe is not None and not is_new and name not in self._tidy):
                continue
            kept = path.read_bytes()
            end = await self._safely(step, step.format, path, name, kept)
            if end is not None and end.code != 0:
                findings += self._objections(step, step.format, name, end)
            if _bytes_of(path) != kept:
                by.append(step.format.label)
            if step.probe is not None and end is not None and end.code == 0:
                self._tidy[name] = _fingerprint(path)
        return Formatted(tuple(by), tuple(findings))

    async def check(self, path: Path, changed: range) -> list[Checked]:
        """What the checks find in a file now that was not there before the edit of the lines `changed`."""
        told: list[Checked] = []
        for step, name in self._steps_for(path):
            if step.check is None:
                continue
            known = self._known.get(_key(step.check, name))
            end = await self._run(step, step.check, name)
            if end is None:
                continue
            now = end.findings if end.code else ()
            # Without a run from before nobody can tell what is new.
            before = known.findings if known is not None else now
            self._known[_key(step.check, name)] = _Known(_fingerprint(path), now)
            if end.code and not has_places(now) and now == before:
                self._complain(step.check, f"failed ({exit_text(end.code)}): {end.said}")
            if new := new_findings(before, now, changed):
                told.append(Checked(step.check.label, tuple(new)))
        return told

    async def _know(self, step: EditStep, check: EditCommand, path: Path, name: str, content: str) -> None:
        known = self._known.get(_key(check, name))
        if known is not None and (known.content == content or not check.is_about_one_file):
            return
        if not content and check.is_about_one_file:  # a new file has no old findings
            self._known[_key(check, name)] = _Known(content, ())
            return
        end = await self._run(step, check, name)
        if end is not None:
            self._known[_key(check, name)] = _Known(content, end.findings if end.code else ())

    async def _safely(
        self, step: EditStep, command: EditCommand, path: Path, name: str, kept: bytes
    ) -> _End | None:
        """Runs a formatter, and puts the file back where it was broken off, or the file is gone or empty."""
        mode = path.stat().st_mode & 0o7777
        end: _End | None = None
        try:
            end = await self._run(step, command, name)
        finally:
            ended_well = end is not None and end.code >= 0
            now = _bytes_of(path)
            if now != kept and (not ended_well or now is None or (kept.strip() and not now.strip())):
                self._put_back(command, path, kept, mode)
        return end

    def _put_back(self, command: EditCommand, path: Path, kept: bytes, mode: int) -> None:
        try:
            self.write(path, kept)
            path.chmod(mode)
        except OSError as error:
            self.notify(f"{_named(command)} has broken {path}, which cannot be put back: {error}")
            return
        self.notify(f"{_named(command)} has broken {path.name}; it is as the edit left it again")

    def _objections(self, step: EditStep, command: EditCommand, name: str, end: _End) -> list[Finding]:
        """What a formatter says of the code; other words of it are for the person, once."""
        if not has_places(end.findings):
            self._complain(command, f"failed ({exit_text(end.code)}): {end.said}")
            return []
        if step.check is not None:  # which will say the same
            return []
        key = (command.line, name)
        before = self._known.get(key)
        self._known[key] = _Known("", end.findings)
        return new_findings(before.findings if before else (), end.findings, range(0))

    async def _run(self, step: EditStep, command: EditCommand, name: str) -> _End | None:
        """How a command ended; None where it did not run to its end, which `notify` was told of."""
        program = step.name or command.line.split()[0]
        if self._left_out & {command.line, program}:
            return None
        environment = {**self.environment(), "NO_COLOR": "1"}
        if step.local_programs and self.local_programs:
            folders = [*self.local_programs, environment.get("PATH", "")]
            environment["PATH"] = ":".join(filter(None, folders))
        try:
            with closing(Output(MOST_OUTPUT_BYTES)) as out:
                line = command.filled(name)
                code = await run_shell(
                    line, self.workspace, environment, command.seconds, out=out, confinement=self.confinement
                )
                text = await out.text()
        except (OSError, ValueError) as error:
            self._leave_out(command, f"cannot be started: {getattr(error, 'strerror', None) or error}")
            return None
        if code is None:
            self._count_timeout(command)
            return None
        found = findings_in(text, self.workspace)
        said = one_line(found[0].text if found else "it says nothing", 200)
        if code in _CANNOT_START and not has_places(found):
            self._left_out.add(program)
            self._leave_out(command, f"cannot be started: {said}")
            return None
        return _End(code, found, said)

    def _count_timeout(self, command: EditCommand) -> None:
        self._timeouts[command.line] = self._timeouts.get(command.line, 0) + 1
        problem = f"did not end within {command.seconds:g} s and was ended"
        if self._timeouts[command.line] < TIMEOUTS_ALLOWED:
            self.notify(f"{_named(command)} {problem}")
        else:
            self._leave_out(command, problem)

    def _leave_out(self, command: EditCommand, problem: str) -> None:
        self._left_out.add(command.line)
        self.notify(f"{_named(command)} {problem}; it is left out from now on")

    def _complain(self, command: EditCommand, problem: str) -> None:
        if command.line not in self._complained:
            self._complained.add(command.line)
            self.notify(f"{_named(command)} {problem}")

    def _steps_for(self, path: Path) -> Iterator[tuple[EditStep, str]]:
        """The steps for a file, with its path from the workspace; none for one that is outside of it."""
        if not path.is_relative_to(self.workspace):
            return
        name = path.relative_to(self.workspace).as_posix()
        for step in self.steps:
            if step.is_about(name):
                yield step, name


def _key(command: EditCommand, name: str) -> tuple[str, str]:
    return (command.line, name if command.is_about_one_file else "")


def _named(command: EditCommand) -> str:
    return f"the command after edits `{one_line(command.line, 80)}`"


def _bytes_of(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError:
        return None


def _fingerprint(path: Path) -> str:
    """The sha256 of a file's content, empty where there is none."""
    content = _bytes_of(path)
    return "" if content is None else hashlib.sha256(content).hexdigest()
