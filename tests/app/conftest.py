"""Folders for the tests of whole sessions."""

from pathlib import Path

import pytest


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the person's own folders are, named by the environment as a container does it."""
    for kind in ("config", "state", "data"):
        monkeypatch.setenv(f"AGENT_{kind.upper()}_HOME", str(tmp_path / kind))
    return tmp_path


@pytest.fixture
def work(homes: Path) -> Path:
    """An empty workspace beside these folders."""
    folder = homes / "work"
    folder.mkdir()
    return folder
