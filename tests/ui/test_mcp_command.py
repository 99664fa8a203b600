"""`/mcp`: what a person sees of the servers, and what it asks of the session."""

from pathlib import Path

from textual.widgets import OptionList, Static

from agent.app.services.mcp import McpDetail, McpReport, McpServerRow
from agent.core.errors import AgentError
from tests.fakes.fake_handle import FakeHandle
from tests.ui.rig import Rig, done_or_asking, rest, settle, type_text, until

ROW = McpServerRow(name="docs", state="running", tools=2, tokens=1340, seconds=0.6)
DETAIL = McpDetail(
    row=ROW,
    what="uvx docs",
    about="Docs 1.0",
    tools=(("docs__find", "Finds [bold]pages"), ("docs__get", "Gets \x1b[2J one")),
    log_file=Path("/state/docs.log"),
    log=("listening",),
)


class Servers(FakeHandle):
    """Answers `mcp` with a report, or with the detail of a server."""

    async def command(self, name, arguments):
        answer = await super().command(name, arguments)
        return DETAIL if name == "mcp" and arguments.get("name") else answer


def rig_with(*rows: McpServerRow) -> Rig:
    report = McpReport(servers=rows, prompt_tokens=240, prompt_seconds=0.1)
    return Rig(handles=[Servers(services={"mcp": report})])


async def line(pilot, rig: Rig, text: str) -> None:
    await type_text(pilot, text)
    await pilot.press("escape", "enter")
    await done_or_asking(pilot)


async def test_servers_are_listed_with_state_tools_and_cost():
    failed = McpServerRow(name="bad", state="failed", why="nosuchcmd was not found")
    rig = rig_with(ROW, failed)
    async with rig.app.run_test(size=(120, 30)) as pilot:
        await settle(pilot, rig)
        await line(pilot, rig, "/mcp")
        shown = "\n".join(strip.text for strip in rig.app.screen._compositor.render_strips())
        assert "about 240 tokens of each prompt, 0.1 s, tools found on demand" in shown
        assert "running · 2 tools · 1,340 tokens (0.6 s)" in shown
        assert "failed · nosuchcmd was not found" in shown


async def test_a_server_is_chosen_and_its_tools_are_read():
    rig = rig_with(ROW)
    async with rig.app.run_test(size=(100, 30)) as pilot:
        await settle(pilot, rig)
        await line(pilot, rig, "/mcp")
        first = rig.app.screen
        await pilot.press("enter")
        await until(pilot, lambda: rig.app.screen not in (first, rig.app.main))
        assert rig.app.screen.query_one(OptionList).option_count == 4
        await pilot.press("enter")
        await rest(pilot)
        page = str(rig.app.screen.query_one("#page-text", Static).render())
        assert "docs__find\nFinds [bold]pages" in page
        assert "Gets ␛[2J one" in page


async def test_an_action_can_be_typed_at_once():
    rig = rig_with(ROW)
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await line(pilot, rig, "/mcp docs reconnect")
        await rest(pilot)
        assert rig.handle.commands[-1] == ("mcp", {"name": "docs", "action": "reconnect"})
        assert rig.lines == ["The MCP server docs was started anew: running, 2 tools."]


async def test_an_action_that_is_none_names_the_others():
    rig = rig_with(ROW)
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await line(pilot, rig, "/mcp docs explode")
        await rest(pilot)
        assert rig.lines == ["/mcp knows no 'explode'\ntools, log, reconnect, enable, disable"]


async def test_a_server_that_does_not_start_is_said_in_the_conversation():
    rig = Rig(handles=[FakeHandle(services={"mcp": AgentError("it ended at once", "see its log")})])
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await line(pilot, rig, "/mcp docs reconnect")
        await rest(pilot)
        assert rig.lines == ["it ended at once\nsee its log"]
