import pytest

from tools._edit.matching import find
from tools._edit.nearest import nearest_region
from tools._edit.prefixes import without_line_numbers


def replaced(text: str, old: str, new: str) -> str | None:
    """The text after replacing the only match, `None` without a match."""
    found = find(text, old, new)
    if found is None:
        return None
    (match,) = found.matches
    return text[: match.start] + match.replacement + text[match.end :]


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("a\n\tif x:\n\t\tgo\n", "    if x:\n        go", "    if y:\n        go", "a\n\tif y:\n\t\tgo\n"),
        ("a\n  if x:\n    go\n", "\tif x:\n\t\tgo", "\tif x:\n\t\trun", "a\n  if x:\n    run\n"),
        ("if x:\n  go\n", "    if x:\n      go", "    if x:\n      run", "if x:\n  run\n"),
        (
            "def f():\n    if x:\n        go\n",
            "def f():\n  if x:\n    go",
            "def f():\n  if x:\n    if y:\n      go",
            "def f():\n    if x:\n        if y:\n            go\n",
        ),
        ("\ta\n", "    a", "    if b:\n        a", "\tif b:\n\t\ta\n"),
        ("    a\n\n    b\n", "a\n\nb", "a\n\nc", "    a\n\n    c\n"),
        ("    a\n    b\n", "\na\nb\n", "\nc\n", "    c\n"),
        ("  a\n  b\n  c\n", "b\n", "", "  a\n  c\n"),
        ("  a\n  last", "last\n", "first\n", "  a\n  first"),
    ],
    ids=[
        "tabs in the file",
        "spaces in the file",
        "too much indentation",
        "narrower steps",
        "one line with a tab",
        "blank lines between",
        "blank lines around",
        "deletion of a line",
        "no final line end",
    ],
)
def test_adapts_new_lines_to_the_file(text: str, old: str, new: str, expected: str):
    assert replaced(text, old, new) == expected


@pytest.mark.parametrize(
    ("text", "old"),
    [
        ("if x:\n    go\nstop\n", "if x:\n    go\n    stop"),
        ("if x:\n    go\n", "if x:\ngo"),
        ("a b\n", "a  b"),
        ("    x = f(1)\n", "  x = f "),
        ("a\n", "   \n"),
        ("\ta\n   b\n", "    a\n        b"),
    ],
    ids=[
        "other structure",
        "no structure",
        "space inside",
        "part of a line",
        "only space",
        "mixed",
    ],
)
def test_does_not_guess(text: str, old: str):
    assert find(text, old, "new") is None


def test_finds_all_places_without_overlap():
    found = find("aaaa", "aa", "b")

    assert found is not None
    assert [(match.start, match.end) for match in found.matches] == [(0, 2), (2, 4)]


def test_a_stricter_level_hides_the_looser_ones():
    found = find("  x\nx  \n", "x", "y")
    assert found is not None
    assert found.level == "exact"

    found = find("  x = 1\nx = 1  \nz\n", "x = 1\nz", "y\nz")
    assert found is not None
    assert found.level == "trailing space"
    assert len(found.matches) == 1

    text = 'x = “a” \nz\n  x = “a”\n  z\nx = "a"\nz\n'
    found = find(text, "x = “a”\nz", "y\nz")
    assert found is not None
    assert (found.level, len(found.matches)) == ("trailing space", 1)
    found = find(text.removeprefix("x = “a” \nz\n"), "x = “a”\nz", "y\nz")
    assert found is not None
    assert (found.level, len(found.matches)) == ("indentation", 1)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("12\tcode\n13\t  more", "code\n  more"),
        ("  9\ta\n 10\tb\n", "a\nb\n"),
        ("7: a\n8: b", "a\nb"),
        ("1 | a\n2 | b", "a\nb"),
        ("3\tonly", "only"),
    ],
)
def test_removes_line_numbers(text: str, plain: str):
    assert without_line_numbers(text) == plain


@pytest.mark.parametrize("text", ["1\ta\n3\tb", "1\ta\nb", "3: a", "", "x = 1", "12", "1 2\n2 3"])
def test_leaves_what_only_looks_like_line_numbers(text: str):
    assert without_line_numbers(text) is None


def test_the_nearest_region_is_found_by_rare_words_in_a_long_file():
    lines = [f"value_{number} = compute({number})" for number in range(20_000)]
    lines[12_345] = "    total = gather(zebra, price)"

    region = nearest_region("\n".join(lines), "total = collect(zebra, price)")

    assert region is not None
    assert region.first == 12_346


def test_there_is_no_nearest_region_without_a_common_word():
    assert nearest_region("alpha\nbeta\n", "gamma") is None


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("say(“hi”)\n", 'say("hi")', 'say("ho")', 'say("ho")\n'),
        ("a – b\nc\u00a0d\n", "a - b\nc d", "a - b\nc e", "a – b\nc e\n"),
        ("    wait…\n", "wait...", "go", "    go\n"),
        ("cafe\u0301\n", "café", "tea", "tea\n"),
        ("zero\u200bwidth\n", "zerowidth", "plain", "plain\n"),
    ],
    ids=["quotes", "dash and space", "ellipsis and indentation", "accent", "no width"],
)
def test_look_alike_characters_are_the_last_resort(text: str, old: str, new: str, expected: str):
    found = find(text, old, new)

    assert found is not None
    assert found.level == "look-alike characters"
    assert replaced(text, old, new) == expected


def test_lines_that_stay_keep_what_the_file_has_in_them():
    text = "# “quoted”  \nx = 1\n\n  \ny = 2\n"

    assert replaced(text, '# "quoted"\nx = 1\n\n\ny = 2', '# "quoted"\nx = 3\n\n\ny = 2') == text.replace(
        "1", "3"
    )


def test_backticks_and_quotes_are_not_alike():
    assert find("run `ls` now é\n", "run 'ls' now é", "x") is None
