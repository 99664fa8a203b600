"""The record of a server that a test runs itself: its process is the test's own."""

import os
from pathlib import Path

from agent.core.whole_file import write_whole
from agent.server.identity import process_identity
from agent.server.record import Record, key_file, write_record

KEY = "key-of-the-slots"


def record_for(port: int, runtime_folder: Path, fingerprint: str = "f" * 32, identity: str = "") -> Record:
    """Writes the record and the key of a server on `port`; returns the record."""
    runtime_folder.mkdir(parents=True, exist_ok=True)
    write_whole(key_file(runtime_folder, fingerprint), KEY)
    record = Record(
        pid=os.getpid(),
        identity=identity or process_identity(os.getpid()) or "",
        port=port,
        profile="mine",
        fingerprint=fingerprint,
        state="ready",
        key_file=str(key_file(runtime_folder, fingerprint)),
        spec_file="",
        log_file=str(runtime_folder / "log"),
        started=0.0,
        context_tokens=4096,
        version="1",
    )
    write_record(record, runtime_folder)
    return record
