import os
from pathlib import Path

import pytest

from agent.core.tool import ToolContext
from tests.tools.ledger import MemoryLedger


@pytest.fixture
def ledger() -> MemoryLedger:
    return MemoryLedger()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = (tmp_path / "work").resolve()
    folder.mkdir()
    return folder


@pytest.fixture
def emitted() -> list[str]:
    return []


@pytest.fixture
def context(workspace: Path, tmp_path: Path, ledger: MemoryLedger, emitted: list[str]) -> ToolContext:
    return ToolContext(
        workspace=workspace,
        ledger=ledger,
        spill_folder=tmp_path / "spill",
        emit=emitted.append,
        environment=dict(os.environ),
    )
