"""The record of a running server: how a later start, in any process, finds and judges it.

One file per server in the runtime folder, readable by its owner only, always replaced as a whole.
This module is on the path of every run, so it imports next to nothing.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

from agent.core.whole_file import write_whole
from agent.server.identity import process_identity
from agent.server.loopback import HOST, keeps_silent, status_of

RecordedState = Literal["starting", "ready", "stopping"]
_PREFIX = "server-"
_RECORD = ".record.json"
_HEALTH_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A server that can be used now.

    `base_url` has no path. `context_tokens` is what one conversation gets, as the server reports it (0 =
    unknown). `fingerprint`, `pid` and `log_file` are None for a server that was not started here.
    `tool_calls` is whether the model's chat template can express tool calls, None where nobody has asked or
    the server does not say. `engine` is a name of `agent.server.engines`, and `model` what requests have to
    call the model. `names` are what a server that was not started here calls its model.
    """

    base_url: str
    api_key: str
    profile: str
    context_tokens: int
    slots: int = 1
    fingerprint: str | None = None
    pid: int | None = None
    log_file: Path | None = None
    tool_calls: bool | None = None
    engine: str = "llama-server"
    model: str = "local"
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What is remembered of a server; times are Unix seconds.

    `identity` tells the process from others, see `process_identity`. `host` is where it is reached from here.
    `engine`, `binary` and `version` say what runs (empty: not known), `speculation` names the kind of the
    profile, `speculates` whether a draft model was seen to work (None: there is none, or nobody has looked).
    `degraded` says that it runs without the draft of its profile, because it crashed with it or was slower.
    `draft_limit` is how many tokens it drafts at once where longer drafts did not pay, 0 = as its profile
    says. `batch_limit` is how many tokens it reads at once where its profile's batch takes too long on this
    machine, 0 = as its profile says. `findings` are what was noticed after the start: `level`, `code`,
    `message` and `hint` of each.
    """

    pid: int
    identity: str
    port: int
    profile: str
    fingerprint: str
    state: RecordedState
    key_file: str
    spec_file: str
    log_file: str
    started: float
    start_seconds: float = 0.0
    context_tokens: int = 0
    slots: int = 1
    host: str = HOST
    engine: str = "embedded"
    binary: str = ""
    version: str = ""
    speculation: str = "none"
    speculates: bool | None = None
    degraded: bool = False
    draft_limit: int = 0
    batch_limit: int = 0
    findings: tuple[Mapping[str, str], ...] = ()

    @property
    def base_url(self) -> str:
        return f"http://[{self.host}]:{self.port}" if ":" in self.host else f"http://{self.host}:{self.port}"

    @property
    def is_running(self) -> bool:
        return process_identity(self.pid) == self.identity

    @property
    def is_healthy(self) -> bool:
        return status_of(self.port, "/health", _HEALTH_SECONDS, self.host) == 200

    @property
    def is_silent(self) -> bool:
        """Whether it takes the question and gives no answer of any kind: it may work, or hang."""
        return keeps_silent(self.port, "/health", _HEALTH_SECONDS, self.host)

    @property
    def api_key(self) -> str:
        """The server's key; empty when the file is gone."""
        return first_key(Path(self.key_file))

    def endpoint(self) -> Endpoint:
        return Endpoint(
            base_url=self.base_url,
            api_key=self.api_key,
            profile=self.profile,
            context_tokens=self.context_tokens,
            slots=self.slots,
            fingerprint=self.fingerprint,
            pid=self.pid,
            log_file=Path(self.log_file),
        )


def first_key(path: Path) -> str:
    """The first key in a file as llama-server reads it: one a line, `#` begins a comment; empty if none."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return ""
    keys = (line.strip() for line in lines)
    return next((key for key in keys if key and not key.startswith("#")), "")


def record_file(runtime_folder: Path, fingerprint: str) -> Path:
    return runtime_folder / f"{_PREFIX}{fingerprint}{_RECORD}"


def key_file(runtime_folder: Path, fingerprint: str) -> Path:
    return runtime_folder / f"{_PREFIX}{fingerprint}.key"


def spec_file(runtime_folder: Path, fingerprint: str) -> Path:
    return runtime_folder / f"{_PREFIX}{fingerprint}.spec.json"


def find_running(fingerprint: str, runtime_folder: Path) -> Endpoint | None:
    """The healthy server for exactly this fingerprint, if there is one. Takes a few milliseconds.

    Only reads: a leftover is cleared away by `ensure_running`.
    """
    record = read_record(record_file(runtime_folder, fingerprint))
    if record is None or record.state != "ready" or record.fingerprint != fingerprint:
        return None
    if not record.is_running or not record.api_key or not record.is_healthy:
        return None
    return record.endpoint()


def list_records(runtime_folder: Path) -> list[Record]:
    """Every readable record, oldest server first."""
    paths = runtime_folder.glob(f"{_PREFIX}*{_RECORD}") if runtime_folder.is_dir() else ()
    records = [record for path in paths if (record := read_record(path)) is not None]
    return sorted(records, key=lambda record: record.started)


def read_record(path: Path) -> Record | None:
    """A record, or None when it is missing or not one that this version wrote."""
    try:
        raw = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return _from_mapping(raw) if isinstance(raw, dict) else None


def write_record(record: Record, runtime_folder: Path) -> None:
    write_whole(
        record_file(runtime_folder, record.fingerprint), json.dumps(asdict(record), indent=1, sort_keys=True)
    )


def remove_record(record: Record, runtime_folder: Path) -> None:
    """Forgets a server that has ended, its key and spec too."""
    for path in (record_file, key_file, spec_file):
        path(runtime_folder, record.fingerprint).unlink(missing_ok=True)


def _from_mapping(raw: Mapping[str, Any]) -> Record | None:
    known = {field.name for field in fields(Record)}
    findings = raw.get("findings", [])
    if not raw.keys() <= known or not isinstance(findings, list):
        return None
    try:
        record = Record(**{**raw, "findings": tuple(one for one in findings if isinstance(one, dict))})
    except TypeError:
        return None
    numbers = (record.pid, record.port, record.context_tokens, record.slots)
    texts = (
        record.identity, record.fingerprint, record.key_file, record.spec_file, record.log_file, record.host,
    )  # fmt: skip
    well_formed = all(isinstance(one, int) for one in numbers) and all(isinstance(one, str) for one in texts)
    return record if well_formed and record.pid > 1 else None
