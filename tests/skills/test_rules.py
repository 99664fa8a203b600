"""`allowed-tools` of other programs as rules of this one."""

import pytest

from agent.skills.rules import as_rule


@pytest.mark.parametrize(
    ("word", "rule"),
    [
        ("Bash(git:*)", "shell(git *)"),
        ("Bash(npm run test)", "shell(npm run test)"),
        ("Bash", "shell"),
        ("Read", "read"),
        ("Grep", "search"),
        ("MultiEdit", "edit"),
        ("shell(make *)", "shell(make *)"),
        ("mcp__server__tool", "server__tool"),
        ("mcp__my-server__a_tool", "my-server__a_tool"),
        ("mcp__server", "server__*"),
        ("mcp__server__*", "server__*"),
        ("mcp__server__tool(x)", ""),
        ("mcp__se*__tool", ""),
        ("WebFetch", ""),
        ("*", ""),
        ("mcp__*", ""),
        ("?", ""),
        ("", ""),
    ],
)
def test_word_becomes_a_rule_or_nothing(word: str, rule: str):
    assert as_rule(word) == rule
