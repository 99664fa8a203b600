"""Runs a command line in bash with stub programs and tells which of them were started."""

import os
import signal
import subprocess
from pathlib import Path
from shutil import which

from tests.patience import PATIENCE_SECONDS
from tests.permissions.command_lines import PROGRAMS, WRAPPERS

_STUB = '#!/bin/sh\necho "${0##*/}" >> started\n'


class BashRunner:
    """Only stubs and a few programs that start others are on the PATH, so no line can do harm.

    Each line gets a folder of its own, where the stubs note their names.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs = folder / "programs"
        self.programs.mkdir()
        self.count = 0
        for name in PROGRAMS:
            stub = self.programs / name
            stub.write_text(_STUB, encoding="utf-8")
            stub.chmod(0o755)
        for name in (*WRAPPERS, "cat"):
            program = which(name)
            if program is not None:
                (self.programs / name).symlink_to(program)

    def started_by(self, line: str) -> set[str]:
        self.count += 1
        home = self.folder / f"home{self.count}"
        home.mkdir()
        process = subprocess.Popen(
            [self.programs / "bash", "-c", line],
            cwd=home,
            env={"PATH": str(self.programs), "HOME": str(home)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            # most children hold the pipe, so its end means that they have ended
            process.communicate(timeout=PATIENCE_SECONDS)
        finally:
            _end_group(process)
        log = home / "started"
        return set(log.read_text(encoding="utf-8").split()) if log.exists() else set()


def _end_group(process: "subprocess.Popen[bytes]") -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
