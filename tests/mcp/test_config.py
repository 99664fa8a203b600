import json

import pytest

from agent.core.errors import UsageError
from agent.mcp.config import expand_server, expanded, parse_mcp_json, parse_server


def test_file_of_other_tools_is_read_as_it_is():
    content = json.dumps(
        {
            "mcpServers": {
                "files": {"command": "npx", "args": ["-y", "files"], "env": {"KEY": "${KEY:-none}"}, "x": 1},
                "docs": {"type": "http", "url": "https://example.org/mcp", "headers": {"A": "Bearer ${KEY}"}},
                "old": {"type": "sse", "url": "https://example.org/sse", "disabled": True},
            }
        }
    ).encode()
    specs, problems = parse_mcp_json(content, ".mcp.json")
    assert [(spec.name, spec.transport, spec.enabled) for spec in specs] == [
        ("files", "stdio", True),
        ("docs", "http", True),
        ("old", "sse", False),
    ]
    assert problems == []


def test_one_bad_entry_leaves_the_others():
    two = '"two": {"command": "x", "url": "http://h/"}'
    content = f'{{"mcpServers": {{"a b": {{"command": "x"}}, {two}, "ok": {{"command": "x"}}}}}}'.encode()
    specs, problems = parse_mcp_json(content, ".mcp.json")
    assert [spec.name for spec in specs] == ["ok"]
    assert len(problems) == 2


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b'{"mcpServers": 3}', b"[" * 100_000])
def test_file_that_is_none_is_refused_in_one_line(content: bytes):
    with pytest.raises(UsageError, match=r"\.mcp\.json"):
        parse_mcp_json(content, ".mcp.json")


@pytest.mark.parametrize(
    ("text", "value"),
    [("${A}/x", "1/x"), ("${B:-two}", "two"), ("${B:-}", ""), ("$A {A}", "$A {A}"), ("${env:A}", "1")],
)
def test_variables_are_replaced(text: str, value: str):
    assert expanded(text, {"A": "1", "B": ""}, "here") == value


def test_missing_variable_without_default_is_named():
    spec = parse_server("one", {"command": "x", "env": {"K": "${NOT_THERE}"}}, "here")
    with pytest.raises(UsageError, match="one: the variable NOT_THERE is not set"):
        expand_server(spec, {})


def test_values_of_secrets_are_in_no_summary_and_no_fingerprint():
    one = parse_server("one", {"command": "x", "env": {"K": "secret"}}, "here")
    other = parse_server("one", {"command": "x", "env": {"K": "other"}}, "here")
    assert one.fingerprint == other.fingerprint
    assert "secret" not in one.summary


def test_another_command_has_another_fingerprint():
    one = parse_server("one", {"command": "x"}, "here")
    assert one.fingerprint != parse_server("one", {"command": "y"}, "here").fingerprint


@pytest.mark.parametrize("name", ["", "a b", "a__b", "a_", "-a", "x" * 40, "a\x1b", "é"])
def test_names_that_could_be_mistaken_are_refused(name: str):
    with pytest.raises(UsageError):
        parse_server(name, {"command": "x"}, "here")


def test_lists_say_which_tools_are_offered():
    spec = parse_server("one", {"command": "x", "allow": ["get_*"], "deny": ["*_secret"]}, "here")
    assert [spec.offers(name) for name in ("get_time", "set_time", "get_secret")] == [True, False, False]


def test_tools_that_were_left_out_in_another_program_are_not_offered():
    table = {"command": "x", "includeTools": ["a", "b"], "excludeTools": ["b"], "disabledTools": ["c"]}
    server = parse_server("one", table, "a test")
    assert [name for name in "abcd" if server.offers(name)] == ["a"]
