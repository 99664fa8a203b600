"""A workspace with everything in it that the gate treats differently."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.core.tool import Access
from agent.permissions.context import Mode
from agent.permissions.gate import Decision, decide
from agent.permissions.rules import Rules

Decide = Callable[..., Decision]

FILES = (
    "src/app.py", "src/util.py", "tests/test_app.py", "build/x", "docs/guide.md", "package.json",
    ".env", ".env.example", "server.pem", ".agent/config.toml", ".git/config", ".git/HEAD",
)  # fmt: skip


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("permissions")
    workspace, outside = folder / "workspace", folder / "outside"
    outside.mkdir()
    (outside / "passwd").write_text("x", encoding="utf-8")
    for name in FILES:
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x", encoding="utf-8")
    (workspace / "leads_out").symlink_to(outside)
    (workspace / "secret_link").symlink_to(".env")
    (workspace / "settings_link").symlink_to(".agent/config.toml")
    return workspace


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
