"""A workspace, something outside of it, a home with secrets; and each kind of sandbox that works here."""

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

from agent.sandbox.bwrap import find_bwrap
from agent.sandbox.find import working
from agent.sandbox.landlock import LEAST_ABI, landlock_version
from agent.sandbox.probed import Probed
from tests.sandbox.cage import Cage
from tests.sandbox.web import Web


@lru_cache(maxsize=1)
def kinds() -> tuple[Probed, ...]:
    """Those that work on this machine, each tried."""
    version = landlock_version()
    candidates = [Probed("bubblewrap", find_bwrap(os.environ) or "", version)]
    if version >= LEAST_ABI:
        candidates.append(Probed("landlock", "", version))
    return tuple(one for one in candidates if not working(one, os.environ))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "cage" in metafunc.fixturenames:
        wanted = metafunc.definition.get_closest_marker("only")
        found = [one for one in kinds() if wanted is None or one.kind in wanted.args]
        metafunc.parametrize("found", found, ids=lambda one: one.kind)


@pytest.fixture
def cage(found: Probed, tmp_path: Path) -> Cage:
    workspace, outside, home = (tmp_path / name for name in ("work", "outside", "home"))
    for folder in (workspace, outside, home / ".ssh"):
        folder.mkdir(parents=True)
    (outside / "file").write_text("kept", encoding="utf-8")
    (home / ".ssh" / "id_ed25519").write_text("a-private-key", encoding="utf-8")
    (home / ".netrc").write_text("a-password", encoding="utf-8")
    (home / "notes").write_text("plain", encoding="utf-8")
    return Cage(found, workspace, outside, home)


@pytest.fixture
def web() -> Iterator[Web]:
    server = Web()
    yield server
    server.close()


@pytest.fixture
def other_web() -> Iterator[Web]:
    server = Web()
    yield server
    server.close()
