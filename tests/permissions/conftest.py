"""A workspace with everything in it that the gate treats differently."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.core.tool import Access
from agent.permissions.context import Mode
from agent.permissions.gate import Decision, decide
from agent.permissions.rules import Rules
from tests.permissions.case_files import make_workspace

Decide = Callable[..., Decision]


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_workspace(tmp_path_factory.mktemp("permissions"))


@pytest.fixture
def judge(workspace: Path) -> Decide:
    """`judge("read", path="x")` or `judge("shell", command="ls")`; keywords may set `mode` and such."""

    def run(
        tool: str,
        access: Access | None = None,
        *,
        mode: Mode = "ask",
        rules: Rules | None = None,
        headless: bool = False,
        protected: tuple[Path, ...] = (),
        **arguments: Any,
    ) -> Decision:
        kinds: dict[str, Access] = {"shell": "execute", "write": "write", "edit": "write", "finish": "finish"}
        return decide(
            tool,
            access or kinds.get(tool, "read"),
            arguments,
            workspace=workspace,
            mode=mode,
            rules=rules or Rules(),
            headless=headless,
            protected=protected,
        )

    return run
