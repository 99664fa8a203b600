"""A folder with some files, and a state folder beside it."""

from pathlib import Path

import pytest


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "work"
    (workspace / "src").mkdir(parents=True)
    (workspace / "src" / "a.py").write_bytes(b"a = 1\r\n\xff")
    (workspace / "script").write_bytes(b"#!/bin/sh\n")
    (workspace / "script").chmod(0o751)
    return workspace


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"
