"""What is left of the output of a check: the failing assertions, few and short."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.verify.digest import MAX_CHARACTERS, digest

CASES = Path(__file__).parents[1] / "cases" / "verify"


def digest_of(name: str) -> str:
    return digest((CASES / f"{name}.txt").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["pytest-q", "pytest-long", "pytest-colour"])
def test_pytest_failures_keep_their_lines_and_lose_the_rest(name: str):
    assert (
        digest_of(name)
        == """\
ERROR at setup of test_needs_numbers
    @pytest.fixture
    def numbers():
>       raise FileNotFoundError("numbers.txt")
E       FileNotFoundError: numbers.txt
test_plain.py:8: FileNotFoundError
FAILED test_mean_of_halves
    def test_mean_of_halves():
        first = [0.5, 1.5]
        second = [1, 2]
        assert mean(first) == 1.0
>       assert mean(second) == 1.5
E       assert 1 == 1.5
E        +  where 1 = mean([1, 2])
test_plain.py:15: AssertionError
FAILED test_clamp_keeps[3]
value = 3
    @pytest.mark.parametrize("value", [3, 4])
    def test_clamp_keeps(value):
>       assert clamp(value, 0, 9) == value
E       assert 0 == 3
E        +  where 0 = clamp(3, 0, 9)
test_plain.py:20: AssertionError
(failures not shown: 1)"""
    )


def test_short_tracebacks_are_kept_whole():
    assert "test_plain.py:15: in test_mean_of_halves\n    assert mean(second) == 1.5" in digest_of(
        "pytest-q-short"
    )


def test_failures_of_one_line_are_found_beside_errors_of_several():
    assert (
        digest_of("pytest-q-line")
        == """\
ERROR at setup of test_needs_numbers
E   FileNotFoundError: numbers.txt
/home/ada/sample/test_plain.py:15: assert 1 == 1.5
/home/ada/sample/test_plain.py:20: assert 0 == 3
(failures not shown: 1)"""
    )


def test_without_tracebacks_the_summary_is_shown():
    assert "FAILED test_plain.py::test_mean_of_halves - assert 1 == 1.5" in digest_of("pytest-q-no")


def test_of_a_long_test_only_the_marked_lines_are_kept():
    assert (
        digest_of("pytest-long-test")
        == """\
FAILED test_long
>       assert total == 4
E       assert 3 == 4"""
    )


def test_a_file_that_cannot_be_imported_is_shown_without_the_importing():
    text = digest_of("pytest-collect")
    assert text.startswith("ERROR collecting test_broken.py\n")
    assert "SyntaxError: invalid syntax" in text
    assert "importlib" not in text


def test_pytest_shows_unittest_cases_with_the_frames_of_the_code():
    text = digest_of("pytest-unittest")
    assert "FAILED MeanTest.test_mean_of_nothing" in text
    assert ">       return sum(values) // len(values)" in text
    assert "_ _ _" not in text


def test_unittest_failures_keep_what_leads_to_them():
    text = digest_of("unittest-q")
    assert text.startswith("ERROR: test_mean_of_nothing (test_calc.MeanTest.test_mean_of_nothing)\n")
    assert "AssertionError: Lists differ: [0, 0, 0] != [0, 4, 9]" in text
    assert text.endswith("AssertionError: 0 != 9\n(failures not shown: 2)")
    assert "Ran 6 tests" not in text
    assert "clamping" not in text


@pytest.mark.parametrize("name", ["unittest-discover", "unittest-import"])
def test_a_broken_module_is_shown_without_the_frames_of_unittest(name: str):
    text = digest_of(name)
    assert text.endswith("    def f(:\n          ^\nSyntaxError: invalid syntax")
    assert "/unittest/" not in text
    assert "loadTestsFromName" not in text


def test_a_script_that_fails_after_passing_tests_is_shown():
    assert digest_of("unittest-then-script").endswith("AssertionError: 1")


def test_a_title_as_wide_as_the_terminal_is_still_a_title():
    name = "test_" + "x" * 90
    output = f"=== FAILURES ===\n_ {name} _\n>   assert 0\nE   assert 0\n=== 1 failed ==="
    assert digest(output) == f"FAILED {name}\n>   assert 0\nE   assert 0"


@pytest.mark.parametrize("name", sorted(path.stem for path in CASES.glob("*.txt")))
def test_no_digest_is_longer_than_allowed(name: str):
    assert 0 < len(digest_of(name)) <= MAX_CHARACTERS


def test_output_of_anything_else_keeps_its_beginning_and_its_end():
    text = digest("first\n" + "noise\n" * 10_000 + "last")
    assert text.startswith("first\n")
    assert text.endswith("\nlast")
    assert "\n[…]\n" in text
    assert len(text) <= MAX_CHARACTERS


def test_failures_without_end_are_cut_one_by_one():
    failing = "".join(f"_____ test_{n} _____\n>   assert {n} == {'9' * 5000}\nE   no\n" for n in range(500))
    text = digest(f"=== FAILURES ===\n{failing}=== 500 failed ===")
    assert text.endswith("(failures not shown: 497)")
    assert len(text) <= MAX_CHARACTERS


def test_a_long_failure_is_cut_between_lines():
    lines = [f"E   line {number} of the difference" for number in range(200)]
    text = digest("\n".join(["=== FAILURES ===", "_____ test_x _____", *lines, "=== 1 failed ==="]))
    head, tail = text.split("\n[…]\n")
    assert head.splitlines()[0] == "FAILED test_x"
    assert {*head.splitlines()[1:], *tail.splitlines()} <= set(lines)
    assert 600 < len(text) <= 900


def test_nothing_stays_nothing():
    assert digest("") == ""
    assert digest("\n \n") == ""


@pytest.mark.parametrize(
    "output",
    [
        "_" * 300_000,
        "=" * 300_000,
        "___ " + "_ " * 150_000,
        "=== FAILURES ===\n_ " + "a _" * 100_000,
        "=== FAILURES ===\n" + "x:" * 150_000,
        "\x00\x1b[31m\ufffd" * 50_000,
    ],
    ids=["dashes", "rules", "spaced", "heads", "colons", "bytes"],
)
def test_huge_garbage_is_cut_down_quickly(output: str):
    assert len(digest(output)) <= MAX_CHARACTERS


@settings(deadline=None)
@given(st.text(alphabet="=_FAILURESERROR: >E\n\x1b[0m1", max_size=400))
def test_any_text_can_be_digested(text: str):
    assert len(digest(text)) <= MAX_CHARACTERS
