from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.ui.conversation.inline import spans_of
from agent.ui.conversation.markdown import MOST_CODE_LINES, MarkdownStream
from agent.ui.conversation.pieces import Code
from tests.ui.conversation.rig import rows_of, streamed

TEXT = (Path(__file__).parent / "reply.md").read_text(encoding="utf-8")
MARKS = ["# ", "- ", "1. ", "> ", "```", "```py\n", "~~~", "|a|b|\n", "|-|-|\n", "**", "`", "---\n", "===\n"]
SPACE = ["\n", "\n\n", "  ", "    ", "\t", "\r\n"]
FRAGMENTS = st.sampled_from([*MARKS, *SPACE, "word ", "x" * 30, "[a](b)", "é", "日本", "<br>", "\\"])


@given(st.lists(FRAGMENTS, max_size=40).map("".join), st.lists(st.integers(1, 9), min_size=1, max_size=20))
def test_result_does_not_depend_on_where_the_stream_was_cut(text: str, sizes: list[int]):
    parts, at, number = [], 0, 0
    while at < len(text):
        size = sizes[number % len(sizes)]
        parts.append(text[at : at + size])
        at, number = at + size, number + 1
    assert streamed(parts, previews=True).rows() == streamed([text], previews=False).rows()


@given(st.text(max_size=300))
def test_any_text_can_be_drawn_and_keeps_its_words(text: str):
    words = "".join("".join(rows_of(f"begin {text} end", 60)).split())
    assert words.startswith("begin")


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_a_real_reply_streams_to_the_same_rows(size: int):
    parts = [TEXT[at : at + size] for at in range(0, len(TEXT), size)]
    assert streamed(parts, previews=True).rows() == streamed([TEXT], previews=False).rows()


def test_words_of_a_paragraph_are_on_screen_before_its_line_ends():
    sheet = streamed([], previews=False)
    stream = MarkdownStream(sheet)
    stream.feed("Here is a beg")
    stream.preview()
    assert sheet.rows()[-1].strip() == "Here is a beg"


def test_finished_pieces_are_not_touched_again():
    sheet = streamed(["First paragraph.\n\nSecond"], previews=True)
    sheet.rows()
    first = sheet.pieces[0].lines
    stream = MarkdownStream(sheet)
    stream.feed("more\n\nand more")
    stream.preview()
    assert sheet.pieces[0].lines is first


def test_lists_are_indented_under_their_items():
    assert rows_of("1. one\n2. two\n   - inner\n     - deep\n\n   still two\n") == [
        "1. one",
        "2. two",
        "   ◦ inner",
        "     ▪ deep",
        "",
        "   still two",
    ]


def test_code_in_a_list_loses_the_indent_of_the_list():
    assert rows_of("- item\n  ```\n  if x:\n      y\n  ```\n") == ["• item", "", "   if x:", "       y"]


def test_a_fence_is_closed_only_by_one_at_least_as_long():
    assert rows_of("````\n```\ninner\n```\n````\nafter") == [" ```", " inner", " ```", "", "after"]


def test_columns_of_a_table_are_aligned_by_cells():
    assert rows_of("| a | bb |\n|---|---:|\n| 日本 | 1 |\n| x | 22 |\n") == [
        "a      bb",
        "────   ──",
        "日本    1",
        "x      22",
    ]


def test_a_table_wider_than_the_screen_wraps_in_its_cells():
    rows = rows_of(f"| a | b |\n|---|---|\n| {'word ' * 30} | {'other ' * 30} |\n", width=60)
    assert max(map(len, rows)) <= 58
    assert "".join(rows).count("word") == 30


def test_lines_that_end_early_are_kept_and_others_are_joined():
    long = "a line that goes on for longer than anyone would break it by hand"
    assert rows_of(f"short\nlines\n{long}\nmore", 100) == ["short", "lines", f"{long} more"]


def test_markup_of_the_toolkit_is_plain_text():
    assert rows_of("[bold red]no[/] [@click=app.bell]x[/]") == ["[bold red]no[/] [@click=app.bell]x[/]"]


def test_links_show_where_they_lead():
    assert rows_of("see [the docs](https://example.org/a)") == ["see the docs (https://example.org/a)"]
    assert rows_of("[example.org](https://example.org)") == ["example.org"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a **b** c", [("a ", ""), ("b", "strong"), (" c", "")]),
        ("*a*", [("a", "emphasis")]),
        ("***a***", [("a", "strong+emphasis")]),
        ("snake_case_name", [("snake_case_name", "")]),
        ("2 * 3 * 4", [("2 * 3 * 4", "")]),
        ("`a*b*`", [("a*b*", "code")]),
        ("``a`b``", [("a`b", "code")]),
        ("**open", [("**open", "")]),
        ("~~no~~", [("no", "struck")]),
        ("**a *b* c**", [("a ", "strong"), ("b", "strong+emphasis"), (" c", "strong")]),
        (r"\*a\*", [("*", ""), ("a", ""), ("*", "")]),
    ],
)
def test_emphasis_and_code(text: str, expected: list[tuple[str, str]]):
    assert spans_of(text) == expected


def test_long_code_goes_on_in_another_piece_with_its_colours():
    code = "\n".join(f"line {number}" for number in range(MOST_CODE_LINES + 5))
    sheet = streamed([f'```python\nx = """\n{code}\n"""\n```\n'], previews=False)
    parts = [piece for piece in sheet.pieces if isinstance(piece, Code)]
    assert len(parts) == 2
    sheet.rows()
    assert parts[1].lines[0].spans[-1][1] == "on-code+code.string"
    assert "".join(part.copy_text() for part in parts).count("\n") == MOST_CODE_LINES + 7


def test_a_line_of_a_megabyte_is_drawn_in_pieces():
    sheet = streamed(["x" * 1_000_000], previews=False)
    assert sum(row.count("x") for row in sheet.rows(80)) == 1_000_000
    assert max(piece.characters for piece in sheet.pieces) <= 4000


def test_a_code_line_of_a_megabyte_is_copied_as_one_line():
    sheet = streamed(["```\n", "y" * 1_000_000, "\n```\n"], previews=False)
    parts = [piece.copy_text() for piece in sheet.pieces]
    assert "".join(parts) == "y" * 1_000_000 + "\n"
