"""Has a scripted server pass for the running server of a profile, as an earlier run would have left it."""

import time
from pathlib import Path

from agent.core.whole_file import write_whole
from agent.resources import profiles_folder
from agent.server.fingerprint import fingerprint
from agent.server.identity import process_identity
from agent.server.profile_files import load_profile
from agent.server.record import Record, key_file, write_record

PROFILE = "embedded-small"
KEY = "benchmark"


def pretend(pid: int, port: int, *, state: Path, models: Path) -> None:
    """Writes the record of the server in process `pid`; `state` and `models` are folders of the agent's."""
    folder = state / "run"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    mark = fingerprint(load_profile(PROFILE, [profiles_folder()]), models)
    write_whole(key_file(folder, mark), KEY)
    record = Record(
        pid=pid,
        identity=process_identity(pid) or "",
        port=port,
        profile=PROFILE,
        fingerprint=mark,
        state="ready",
        key_file=str(key_file(folder, mark)),
        spec_file="",
        log_file=str(state / "server.log"),
        started=time.time(),
        context_tokens=32_768,
    )
    write_record(record, folder)
