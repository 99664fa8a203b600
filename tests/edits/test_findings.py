"""Findings in the output of checkers, and which of them are new after an edit."""

from pathlib import Path

import pytest

from agent.edits.findings import changed_lines, findings_in, has_places, new_findings

HERE = Path("/home/me/p")
ALL = range(1, 100)


def texts(output: str) -> list[str]:
    return [found.text for found in findings_in(output, HERE)]


@pytest.mark.parametrize(
    "line",
    [
        "a.py:3:5: F401 `os` imported but unused",
        "src/a.py:3: error: Name 'x' is not defined",
        "src/a.ts(3,5): error TS2322: Type 'string' is not assignable.",
        "a.py:3:5 - error: 'x' is not defined (reportUndefinedVariable)",
        "./a.go:3:2: undefined: x",
        "error: Failed to parse a.py:3:8: Expected a parameter",
        "[error] a.js: SyntaxError: Unexpected token (3:5)",
        "  3:5  error  'x' is not defined",
    ],
)
def test_line_of_a_checker_has_a_place(line: str):
    (found,) = findings_in(f"Some heading\n{line}\nFound 1 error.\n", HERE)
    assert (found.text, found.line) == (" ".join(line.split()), 3)


def test_place_below_its_message_is_put_together():
    (found,) = findings_in("error: expected `;`\n  --> src/a.rs:3:5\n   |\n3  | let x = 1\n", HERE)
    assert (found.text, found.line) == ("src/a.rs:3: error: expected `;`", 3)


def test_own_folder_is_left_out_of_paths():
    assert texts("  /home/me/p/a.py:3:5 - error: no\n") == ["a.py:3:5 - error: no"]


def test_colours_and_invisible_characters_are_left_out():
    assert texts("\x1b[1ma.py\x1b[0m:3:5: b\u200bad\x07\n") == ["a.py:3:5: bad"]


def test_output_without_any_place_counts_line_by_line():
    found = findings_in("Expecting value: line 1 column 2\n\nthe end\n", HERE)
    assert [one.text for one in found] == ["Expecting value: line 1 column 2", "the end"]
    assert not has_places(found)


def test_time_is_no_place():
    assert not has_places(findings_in("it is 10:30: time to go\n", HERE))


def test_long_line_is_cut():
    assert len(texts(f"a.py:1:1: {'x' * 5000}")[0]) == 200


def test_finding_that_has_only_moved_is_not_new():
    before = findings_in("a.py:3:5: F821 Undefined name `x`\n", HERE)
    after = findings_in("a.py:9:5: F821 Undefined name `x`\na.py:4:1: F821 Undefined name `y`\n", HERE)
    assert [found.text for found in new_findings(before, after, ALL)] == ["a.py:4:1: F821 Undefined name `y`"]


def test_other_line_in_a_message_may_move_too():
    before = findings_in("a.py:3:5: F811 redefinition of `x` from line 1\n", HERE)
    after = findings_in("a.py:4:5: F811 redefinition of `x` from line 2\n", HERE)
    assert new_findings(before, after, ALL) == []


def test_of_equal_findings_the_one_in_the_edited_lines_is_new():
    before = findings_in("a.py:30:1: E711 no\n", HERE)
    after = findings_in("a.py:5:1: E711 no\na.py:31:1: E711 no\n", HERE)
    assert [found.line for found in new_findings(before, after, range(5, 6))] == [5]
    assert [found.line for found in new_findings(before, after, range(31, 32))] == [31]


def test_same_message_in_another_file_is_new():
    before = findings_in("a.py:3:5: bad\n", HERE)
    assert len(new_findings(before, findings_in("b.py:3:5: bad\n", HERE), ALL)) == 1


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ("a\nb\n", "a\nb\n", range(0)),
        ("a\nb\nc\n", "a\nX\nc\n", range(2, 3)),
        ("a\n", "a\nb\nc\n", range(2, 4)),
        ("a\nb\nc\n", "a\nc\n", range(2, 3)),
        ("", "a\nb\n", range(1, 3)),
        ("a\na\n", "a\na\na\n", range(3, 4)),
    ],
)
def test_changed_lines_are_between_first_and_last_difference(before: str, after: str, lines: range):
    assert changed_lines(before, after) == lines
