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
        ("mcp__server__tool", "mcp__server__tool"),
        ("WebFetch", ""),
        ("*", ""),
        ("mcp__*", ""),
        ("?", ""),
        ("", ""),
    ],
)
def test_word_becomes_a_rule_or_nothing(word: str, rule: str):
    assert as_rule(word) == rule
