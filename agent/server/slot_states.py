"""What a server's slot held, kept as a file: a prompt that was evaluated once need not be evaluated again.

llama-server writes the state of a slot into the folder of `--slot-save-path` and reads it back (`POST
/slots/{id}?action=save|restore`, as of b11434). It trusts what it reads: a file that was cut short ends the
process, and one of another model would be wrong without a word. So beside each state stands a note of what
it belongs to, and nothing is read back whose size, server or context is not the noted one.

A state holds the tokens of a conversation, secrets in it included: files are for their owner only.
"""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from agent.core.file_times import last_change
from agent.core.private_folder import make_private_folder
from agent.core.whole_file import write_whole
from agent.server import probe
from agent.server.loopback import request_json
from agent.server.record import Record

Kind = Literal["head", "session"]
KEPT_FREE_BYTES = 1024**3
"""What a disk has left beside a new state."""

TOLERANCE_TOKENS = 8
"""What a slot may hold more or less than a conversation: its last token is not evaluated, a draft may be."""

_ACTION_SECONDS = 120.0
_NOTE = ".json"
_STATE = ".bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredState:
    """The note beside a state.

    `name` is that of its files without suffix. `digest` identifies the prompt of a head, `session` is the
    folder of the session whose conversation it is (empty for heads). `build`, `template` and `context` are
    what `/props` said when it was saved. `life` is the server process that wrote it, see `life_of`.
    `seconds` is how long evaluating the tokens took or would have taken.
    """

    name: str
    kind: Kind
    tokens: int
    size: int
    build: str
    template: str
    context: int
    life: str
    seconds: float
    digest: str = ""
    session: str = ""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What a state depends on besides the fingerprint, as the server itself says it."""

    build: str
    template: str
    context: int


def folder_of(states: Path, fingerprint: str) -> Path:
    """Where the states of one server are. The fingerprint stands for model files and all settings."""
    return states / fingerprint


def life_of(record: Record) -> str:
    """Tells one run of a server from the next."""
    return f"{record.pid}:{record.identity}"


def facts_of(record: Record) -> ServerFacts | None:
    """What `/props` says; None where the server does not answer, or says too little to rely on."""
    props = probe.props_of(record)
    offer = probe.offer_in(props)
    build = props.get("build_info") if props else None
    if props is None or offer is None or not isinstance(build, str):
        return None
    template = hashlib.sha256(str(props.get("chat_template")).encode("utf-8", "replace")).hexdigest()[:16]
    return ServerFacts(f"{build} {record.version}".strip(), template, offer.context_tokens)


def states_in(folder: Path) -> list[StoredState]:
    """All whole states of one server, the one used last first.

    What is not whole, and what belongs to a session that was removed, is deleted on the way.
    """
    if not folder.is_dir():
        return []
    found: list[tuple[float, StoredState]] = []
    now = time.time()
    notes = {path.stem for path in folder.glob(f"*{_NOTE}")}
    for path in folder.glob(f"*{_STATE}"):
        state = _read_note(folder, path.stem) if path.stem in notes else None
        if state is not None and _is_whole(folder, state):
            found.append((last_change(path, now), state))
        elif state is not None or path.stem in notes or _is_old(path):
            delete(folder, path.stem)
    for name in notes:
        if not (folder / f"{name}{_STATE}").exists():
            delete(folder, name)
    return [state for _, state in sorted(found, key=lambda one: one[0], reverse=True)]


def find_state(folder: Path, digest: str) -> StoredState | None:
    """The state of the head or conversation that `digest` identifies."""
    return next((state for state in states_in(folder) if state.digest == digest), None)


def save(record: Record, folder: Path, slot: int, draft: StoredState) -> StoredState | None:
    """Has the server write what `slot` holds; `draft` says what that should be, its size aside.

    None where the server cannot, or wrote something else than was expected; then nothing is left behind.
    Replaces an earlier state of the same name.
    """
    path = folder / f"{draft.name}{_STATE}"
    try:
        make_private_folder(folder)
        delete(folder, draft.name)
        answer = _act(record, slot, "save", path.name)
        size = path.stat().st_size
        saved = answer.get("n_saved") if answer is not None else None
        if answer is None or answer.get("n_written") != size or not isinstance(saved, int):
            raise OSError("the server saved something else")
        if abs(saved - draft.tokens) > TOLERANCE_TOKENS:
            raise OSError("the slot holds something else")
        path.chmod(0o600)
        stored = replace(draft, size=size, tokens=saved)
        write_whole(folder / f"{draft.name}{_NOTE}", json.dumps(asdict(stored)))
    except OSError:
        delete(folder, draft.name)
        return None
    return stored


def restore(record: Record, folder: Path, state: StoredState, slot: int) -> bool:
    """Has the server read a state into `slot`. One that does not fit or fails is deleted."""
    if not _is_whole(folder, state) or facts_of(record) != _facts(state):
        delete(folder, state.name)
        return False
    path = folder / f"{state.name}{_STATE}"
    try:
        answer = _act(record, slot, "restore", path.name)
    except OSError:
        answer = None
    if answer is None or answer.get("n_restored") != state.tokens:
        delete(folder, state.name)
        return False
    os.utime(path)
    return True


def delete(folder: Path, name: str) -> None:
    """Deletes a state; the note first, so that half a state is never taken for one."""
    for suffix in (_NOTE, _STATE):
        try:
            (folder / f"{name}{suffix}").unlink(missing_ok=True)
        except OSError:
            continue


def all_states(states: Path) -> Iterator[tuple[Path, StoredState]]:
    """Every state of every server, with its folder."""
    folders = sorted(path for path in states.iterdir() if path.is_dir()) if states.is_dir() else []
    for folder in folders:
        for state in states_in(folder):
            yield folder, state


def prune(states: Path, limit: int) -> int:
    """Deletes what was used longest ago until at most `limit` bytes are left; returns how many are."""
    now = time.time()
    found = [
        (last_change(folder / f"{state.name}{_STATE}", now), folder, state)
        for folder, state in all_states(states)
    ]
    total = 0
    for _, folder, state in sorted(found, key=lambda one: one[0], reverse=True):
        if total + state.size > limit:
            delete(folder, state.name)
        else:
            total += state.size
    return total


def remove_leftovers(states: Path) -> None:
    """Deletes also what is no whole state. The folders stay: a running server writes into its own."""
    for folder in [path for path in states.iterdir() if path.is_dir()] if states.is_dir() else []:
        for path in (*folder.glob(f"*{_STATE}"), *folder.glob(f"*{_NOTE}")):
            path.unlink(missing_ok=True)


def has_room(folder: Path, size: int) -> bool:
    """Whether the disk takes a state of `size` bytes and is not nearly full then."""
    there = next((one for one in (folder, *folder.parents) if one.is_dir()), None)
    try:
        return there is not None and shutil.disk_usage(there).free >= size + KEPT_FREE_BYTES
    except OSError:
        return False


def bytes_per_token(folder: Path) -> float | None:
    """As seen in the states of this server; None where there are none."""
    states = states_in(folder)
    tokens = sum(state.tokens for state in states)
    return sum(state.size for state in states) / tokens if tokens else None


def prefill_rate(folder: Path) -> float | None:
    """Tokens a second that this server evaluated when its states were kept; None where there are none."""
    states = states_in(folder)
    seconds = sum(state.seconds for state in states)
    return sum(state.tokens for state in states) / seconds if seconds > 0 else None


def _act(record: Record, slot: int, action: str, filename: str) -> dict[str, Any] | None:
    """The answer of the server; None when it refuses. Raises OSError."""
    path = f"/slots/{slot}?action={action}"
    status, answer = request_json(
        record.port, "POST", path, record.api_key, {"filename": filename}, _ACTION_SECONDS, record.host
    )
    return answer if status == 200 and isinstance(answer, dict) else None


def _facts(state: StoredState) -> ServerFacts:
    return ServerFacts(state.build, state.template, state.context)


def _is_whole(folder: Path, state: StoredState) -> bool:
    try:
        size = (folder / f"{state.name}{_STATE}").stat().st_size
    except OSError:
        return False
    return size == state.size and (not state.session or Path(state.session).is_dir())


def _is_old(path: Path) -> bool:
    """A state without a note may be one that is written right now."""
    try:
        return time.time() - path.stat().st_mtime > _ACTION_SECONDS
    except OSError:
        return False


def _read_note(folder: Path, name: str) -> StoredState | None:
    try:
        raw = json.loads((folder / f"{name}{_NOTE}").read_text("utf-8"))
        return _from_mapping(raw) if isinstance(raw, Mapping) and raw.get("name") == name else None
    except (OSError, ValueError):
        return None


def _from_mapping(raw: Mapping[str, Any]) -> StoredState | None:
    if raw.keys() != {field.name for field in fields(StoredState)}:
        return None
    numbers = (raw["tokens"], raw["size"], raw["context"])
    texts = ("name", "kind", "build", "template", "life", "digest", "session")
    if not all(isinstance(one, int) for one in numbers) or not all(
        isinstance(raw[one], str) for one in texts
    ):
        return None
    return StoredState(**raw) if isinstance(raw["seconds"], int | float) else None
