"""Reads a server's log: the end of it, and why a start failed.

The texts of the failures are llama.cpp's own, as its server printed them in 2026.
"""

import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent.core.errors import AgentError, ModelFileError, ServerError

FailureKind = Literal[
    "engine-missing",
    "port",
    "file-missing",
    "file-damaged",
    "architecture",
    "vocabulary",
    "memory",
    "template",
    "parameter",
    "assertion",
    "stopped",
    "unknown",
]
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


@dataclass(frozen=True, slots=True)
class _Rule:
    kind: FailureKind
    pattern: re.Pattern[str]
    summary: str
    remedy: str


INSTALL_ENGINE = (
    "install it: uv pip install 'dflash-agent[embedded]' or python -m pip install 'dflash-agent[embedded]'"
)

# In this order, because one failure is followed by general ones ("failed to load model").
_RULES = (
    _Rule(
        "engine-missing",
        re.compile(r"cannot import xllamacpp"),
        "its engine is not installed",
        INSTALL_ENGINE,
    ),
    _Rule(
        "port",
        re.compile(r"couldn't bind HTTP server socket"),
        "its port is in use",
        "choose another port in the profile, or 0 for a random one",
    ),
    _Rule(
        "file-damaged",
        re.compile(
            r"invalid magic|not within the file bounds|corrupted or incomplete"
            r"|failed to read (key|tensor|magic)"
        ),
        "the model file is damaged or only half there",
        "check it with `agent model verify`, then `agent model rm` and `agent model pull`",
    ),
    _Rule(
        "file-missing",
        re.compile(r"failed to open GGUF file"),
        "a model file is missing",
        "get it with `agent model pull`",
    ),
    _Rule(
        "architecture",
        re.compile(r"unknown model architecture|wrong number of tensors|requires 'target_layers'"),
        "this engine does not know the model's architecture",
        "choose another model file, or update the engine",
    ),
    _Rule(
        "memory",
        re.compile(
            r"failed to allocate|unable to allocate|cannot allocate memory|out of memory|bad_alloc"
            r"|ErrorOutOfDevice",
            re.IGNORECASE,
        ),
        "not enough memory",
        "lower `context` in the profile, close other programs, or choose a smaller model",
    ),
    _Rule(
        "parameter",
        re.compile(r"requires flash_attn|does not know|agent: the engine did not start: (?!Failed to init)"),
        "the engine refuses a value of the profile",
        "correct that value in the profile",
    ),
    _Rule(
        "vocabulary",
        re.compile(r"failed to load draft model|vocab(ulary)? .*(mismatch|not compatible|must match)"),
        "the draft model does not fit the target",
        "choose a draft model of the same family",
    ),
    _Rule(
        "template",
        re.compile(r"chat template is not supported|failed to initialize chat template"),
        "the engine cannot use the model's chat template",
        "choose a model file with a proper chat template",
    ),
    _Rule(
        "memory",
        re.compile(r"failed to create_?\s?context"),
        "the context could not be created",
        "lower `context` in the profile, or check its KV types",
    ),
    _Rule(
        "assertion",
        re.compile(r"GGML_ASSERT\("),
        "the engine stopped itself",
        'target, draft model and kind of speculation may not fit together; try speculation.kind = "none"',
    ),
)


def classify(log_text: str, exit_status: int | None) -> Failure:
    """Finds the cause of a failure.

    Args:
        log_text: what the server printed in this run.
        exit_status: as `os.waitstatus_to_exitcode` gives it, None when it is not known.
    """
    lines = log_text.splitlines()
    for rule in _RULES:
        for line in lines:
            if rule.pattern.search(line):
                return Failure(rule.kind, rule.summary, _shown(line), rule.remedy)
    if exit_status == -signal.SIGKILL:
        summary = "it was killed, which is what the system does when memory runs out"
        return Failure(
            "memory", summary, "", "close other programs, lower `context`, or choose a smaller model"
        )
    if exit_status == -signal.SIGTERM:
        return Failure(
            "stopped", "it was stopped from outside", "", "start it again with `agent server start`"
        )
    how = f"it ended with {describe_exit(exit_status)}" if exit_status is not None else "it ended"
    return Failure("unknown", how, last_line(log_text), "look into its log with `agent server logs`")


def describe_exit(exit_status: int) -> str:
    """`signal SIGSEGV` or `status 1`."""
    if exit_status >= 0:
        return f"status {exit_status}"
    try:
        return f"signal {signal.Signals(-exit_status).name}"
    except ValueError:
        return f"signal {-exit_status}"


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
