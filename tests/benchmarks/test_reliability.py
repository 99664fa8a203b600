"""A few hundred cases of the reliability figures, and that their oracles see damage."""

import json
import random
from pathlib import Path

import pytest

from agent.core.tool import ToolResult
from benchmarks.reliability import edits
from benchmarks.reliability.__main__ import merge, part_names
from benchmarks.reliability.edits import Case, Round


def test_random_edits_change_nothing_outside():
    figures = edits.run(300, seed=7)

    assert figures["first_failures"] == []
    assert figures["bytes_outside_changed"] == 0
    assert figures["edited"] > 100
    assert figures["refused"] > 50
    assert len(figures["kinds"]) > 7


class _TurnsLineEnds(Round):
    async def call(self, case: Case) -> ToolResult:
        result = await super().call(case)
        self._path.write_bytes(self._path.read_bytes().replace(b"\r\n", b"\n"))
        return result


class _LeavesTraces(Round):
    async def call(self, case: Case) -> ToolResult:
        result = await super().call(case)
        self._path.with_name("file.txt.orig").touch()
        return result


@pytest.mark.parametrize("damaging", [_TurnsLineEnds, _LeavesTraces])
async def test_damage_is_seen(tmp_path: Path, damaging: type[Round]):
    case = Case("unique", "utf-8", b"a\r\n@1b@2\r\nc\r\n", "@1b@2", "@3c@4", b"a\r\n")

    assert await Round(tmp_path).fault(case) == ""
    assert await damaging(tmp_path).fault(case)


def test_the_same_seed_makes_the_same_cases():
    assert edits.made(random.Random(3)) == edits.made(random.Random(3))


def test_parts_do_not_disturb_each_other(tmp_path: Path):
    path = tmp_path / "results" / "reliability.json"
    merge(path, "edits", {"cases": 1})
    merge(path, "other", {"cases": 2})
    merge(path, "edits", {"cases": 3})

    assert json.loads(path.read_text("utf-8")) == {"edits": {"cases": 3}, "other": {"cases": 2}}
    assert "edits" in part_names()
