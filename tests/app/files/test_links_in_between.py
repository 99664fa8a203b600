"""A link that is put in the way between the question whether a call is allowed and the call itself.

A process that a command has left behind can change a name from a folder to a link again and again.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent.app.turns.workbench import RuleGate
from agent.core.events import ToolFinished
from agent.core.executor import Gate, GateDecision, ToolExecutor
from agent.core.handle import Answer
from agent.core.messages import ToolCall
from agent.core.tool import Tool, ToolContext
from agent.permissions.rules import parse_rules
from agent.session.ledger import SessionLedger
from tests.app.talk import talking
from tests.conftest import StartServer
from tests.fakes.script import call
from tools.edit import EditTool
from tools.patch import PatchTool
from tools.read import ReadTool
from tools.search import SearchTool
from tools.write import WriteTool

_PATCH = "*** Begin Patch\n*** Add File: place/pre-commit\n+rm\n*** End Patch"


@dataclass(frozen=True, slots=True)
class SwappingGate:
    """Puts the link in the place of the folder as soon as the real gate has looked at it."""

    gate: Gate
    place: Path
    target: Path

    async def decide(self, tool: Tool, arguments: Mapping[str, Any]) -> GateDecision:
        decision = await self.gate.decide(tool, arguments)
        self.place.rename(self.place.with_name("before"))
        self.place.symlink_to(self.target)
        return decision


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = (tmp_path / "work").resolve()
    for name in ("place/a.txt", ".git/hooks/a.txt", "private/a.txt"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text(f"{name}\n", "utf-8")
    return folder


@pytest.mark.parametrize(
    ("tool", "arguments", "target"),
    [
        (WriteTool(), {"path": "place/pre-commit", "content": "rm\n"}, ".git/hooks"),
        (EditTool(), {"path": "place/a.txt", "old": ".git/hooks", "new": "rm"}, ".git/hooks"),
        (PatchTool(), {"input": _PATCH}, ".git/hooks"),
        (ReadTool(), {"path": "place/a.txt"}, "private"),
        (SearchTool(), {"pattern": "a", "path": "place/a.txt"}, "private"),
    ],
    ids=["write", "edit", "patch", "read", "search"],
)
async def test_a_call_goes_to_no_other_file_than_the_one_that_was_allowed(
    workspace: Path, tmp_path: Path, tool: Tool, arguments: dict[str, Any], target: str
):
    rules = parse_rules(allow=(), deny=("read(private/**)",))
    gate = RuleGate(workspace=workspace, mode="accept-edits", rules=rules, protected=())
    context = ToolContext(
        workspace=workspace,
        ledger=SessionLedger(workspace, tmp_path / "session"),
        spill_folder=tmp_path / "spill",
        emit=lambda _: None,
    )
    swapping = SwappingGate(gate, workspace / "place", workspace / target)
    executor = ToolExecutor((tool,), gate=swapping, context=context, result_limit=lambda: 10_000)
    before = {path: path.read_text("utf-8") for path in (workspace / ".git").rglob("*") if path.is_file()}

    items = [
        item async for item in executor.execute(ToolCall("1", tool.name, arguments, ""), asyncio.Event())
    ]

    [end] = [item for item in items if isinstance(item, ToolFinished)]
    assert end.outcome == "error"
    assert "leads to another file now" in end.text
    assert "private/a.txt\n" not in end.text
    after = {path: path.read_text("utf-8") for path in (workspace / ".git").rglob("*") if path.is_file()}
    assert after == before


async def test_nor_does_one_that_a_person_took_their_time_over(scripted_server: StartServer, work: Path):
    (work / "place").mkdir()
    (work / ".git" / "hooks").mkdir(parents=True)
    server = scripted_server(call("write", path="place/pre-commit", content="rm\n"), "Done.")
    async with talking(work, server) as talk:
        talk.session.prompt("Do it")
        request = await talk.until("approval_request")
        (work / "place").rmdir()
        (work / "place").symlink_to(work / ".git" / "hooks")
        talk.session.answer(request.request_id, Answer(kind="once"))
        await talk.until("turn_finished")
    assert talk.of("tool_finished")[0].outcome == "error"
    assert not list((work / ".git" / "hooks").glob("pre-commit"))
