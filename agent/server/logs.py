"""Reads a server's log: the end of it, and why a start failed.

The texts of the failures are llama.cpp's own, as its server printed them in 2026.
"""

import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from agent.core.errors import AgentError, ModelFileError, ServerError

if TYPE_CHECKING:
    from agent.server.failure_rules import Rule

FailureKind = Literal[
    "engine-missing",
    "program",  # the binary itself cannot run here
    "flag",
    "value",  # of a flag
    "environment",
    "port",
    "file-missing",
    "file-damaged",
    "architecture",
    "vocabulary",
    "speculation",
    "memory",
    "template",
    "download",
    "gpu",
    "parameter",
    "assertion",
    "stopped",
    "crash",
    "unknown",
]
INSTALL_ENGINE = (
    "install it: uv pip install 'dflash-agent[embedded]' or python -m pip install 'dflash-agent[embedded]'"
)
_TAIL_BYTES = 256 * 1024
_LONGEST_LINE = 300
_STAGES = (
    ("loading model", "loading the model"),
    ("loading draft model", "loading the draft model"),
    ("threadpool init", "preparing the context"),
    ("initializing, n_slots", "preparing the slots"),
    ("listening on", "up"),
)
_TIME_AND_LEVEL = re.compile(r"^[\d.]+ [A-Z] ")
_READY = re.compile(r"listening on (https?|unix)|agent: serving on")
_SHELL_SIGNALS = 128
_CRASHED = (
    'lower `context` in the profile, or set speculation.kind = "none"; if it happens again, try another '
    "version with `agent server install`"
)
_BY_SIGNAL: tuple[tuple[signal.Signals, FailureKind, str, str], ...] = (
    (
        signal.SIGKILL,
        "memory",
        "it was killed, which is what the system does when memory runs out",
        "close other programs, lower `context` in the profile, or choose a smaller model",
    ),
    (signal.SIGTERM, "stopped", "it was stopped from outside", "start it again with `agent server start`"),
    (signal.SIGINT, "stopped", "it was stopped from outside", "start it again with `agent server start`"),
    (
        signal.SIGILL,
        "program",
        "it uses instructions that this processor does not have (signal SIGILL)",
        "build it for this machine with `agent server install`",
    ),
    (
        signal.SIGBUS,
        "memory",
        "it could not read a mapped file, or memory ran out (signal SIGBUS)",
        "check the model files with `agent model verify`, and lower `context` in the profile",
    ),
    (signal.SIGSEGV, "crash", "it crashed (signal SIGSEGV)", _CRASHED),
    (signal.SIGABRT, "crash", "it stopped itself without a word (signal SIGABRT)", _CRASHED),
    (signal.SIGFPE, "crash", "it crashed (signal SIGFPE)", _CRASHED),
)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a server did not start or ended: the cause, the log line that says so, and what to do."""

    kind: FailureKind
    summary: str
    line: str
    remedy: str

    def as_error(self, profile: str, log_file: Path) -> AgentError:
        """The error to show; a model file that is missing or damaged is a `ModelFileError`."""
        kind = ModelFileError if self.kind in ("file-missing", "file-damaged") else ServerError
        quoted = f": {self.line}" if self.line else ""
        return kind(
            f"the server of profile {profile!r} failed: {self.summary}{quoted}",
            f"{self.remedy} (log: {log_file})",
        )


def classify(log_text: str, exit_status: int | None) -> Failure:
    """Finds the cause of a failure.

    Args:
        log_text: what the server printed in this run.
        exit_status: as `os.waitstatus_to_exitcode` gives it, None when it is not known.
    """
    # Dozens of patterns that a start which goes well has no use for.
    from agent.server.failure_rules import HARMLESS, RULES

    lines = _since_ready(log_text.splitlines())
    lines = [line for line in lines if not HARMLESS.search(line)]
    of_draft = "failed to load draft model" in log_text
    for rule in RULES:
        for line in lines:
            plain = _TIME_AND_LEVEL.sub("", line)
            found = rule.pattern.search(plain)
            if found:
                return _failure(rule, found, line, of_draft)
    return _without_a_word(log_text, exit_status)


def _since_ready(lines: list[str]) -> list[str]:
    """What a server complained of while it loaded is not why it ended after that."""
    ready = [number for number, line in enumerate(lines) if _READY.search(line)]
    return lines[ready[-1] + 1 :] if ready else lines


def _failure(rule: "Rule", found: re.Match[str], line: str, of_draft: bool) -> Failure:
    from agent.server.flag_keys import where_to_change

    words = {name: (value or "").strip() for name, value in found.groupdict().items()}
    words["change"] = where_to_change(words.get("flag", ""))
    words["file"], words["table"] = ("draft model file", "draft") if of_draft else ("model file", "target")
    return Failure(rule.kind, rule.summary.format_map(words), _shown(line), rule.remedy.format_map(words))


def _without_a_word(log_text: str, exit_status: int | None) -> Failure:
    """The cause by how the process ended alone. A shell gives 128 more than the signal's number."""
    status = exit_status
    if status is not None and status > _SHELL_SIGNALS:
        status = _SHELL_SIGNALS - status
    for number, kind, summary, remedy in _BY_SIGNAL:
        if status == -number:
            return Failure(kind, summary, "", remedy)
    how = f"it ended with {describe_exit(exit_status)}" if exit_status is not None else "it ended"
    return Failure("unknown", how, last_line(log_text), "look into its log with `agent server logs`")


def describe_exit(exit_status: int) -> str:
    """`signal SIGSEGV` or `status 1`; a status above 128 is a signal that a shell passed on."""
    number = -exit_status if exit_status < 0 else exit_status - _SHELL_SIGNALS
    if number <= 0:
        return f"status {exit_status}"
    try:
        return f"signal {signal.Signals(number).name}"
    except ValueError:
        return f"signal {number}" if exit_status < 0 else f"status {exit_status}"


def read_tail(log_file: Path, limit: int = _TAIL_BYTES) -> str:
    """The last `limit` bytes of a log, empty when there is none."""
    try:
        with log_file.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - limit))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def stage(log_text: str) -> str:
    """How far a start has come, in words for people."""
    reached = {log_text.rfind(sign): words for sign, words in _STAGES}
    latest = max(reached)
    return reached[latest] if latest >= 0 else "starting the engine"


def last_line(log_text: str) -> str:
    """The last line that says something."""
    lines = [line for line in log_text.splitlines() if line.strip()]
    return _shown(lines[-1]) if lines else ""


def _shown(line: str) -> str:
    return " ".join(_TIME_AND_LEVEL.sub("", line).split())[:_LONGEST_LINE]
