import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from agent.ui.conversation import text as module
from agent.ui.conversation.text import (
    cells_fit,
    expand_tabs,
    is_narrow,
    one_line,
    pieces,
    rows_of_cells,
    rows_of_words,
    visible,
)

ODD = st.text(alphabet=st.sampled_from("ab  -日本🙂👨‍👩‍👧é\u0301’—"), max_size=80)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31m", "␛[31m"),
        ("\x07", "␇"),
        ("a\rb", "a␍b"),
        ("\x9b2J", "‹009B›2J"),
        ("\u202eabc", "‹202E›abc"),
        ("\u2066x\u2069", "‹2066›x‹2069›"),
        ("\u2028", "‹2028›"),
        ("\ud800", "‹D800›"),
        ("\x7f\x00", "␡␀"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("family 👨‍👩‍👧", "family 👨‍👩‍👧"),
    ],
)
def test_what_steers_a_terminal_is_shown_as_a_symbol(text: str, expected: str):
    assert visible(text) == expected


def test_every_character_taken_for_narrow_is_one_cell_and_joins_with_nothing():
    narrow = [chr(number) for number in range(0x20, 0x3000) if is_narrow(chr(number))]
    assert [character for character in narrow if cell_len(character) != 1] == []
    assert len(narrow) > 900


def test_tabs_go_to_the_next_stop_in_cells():
    assert expand_tabs("a\tb") == "a   b"
    assert expand_tabs("日本\tb") == "日本    b"


@given(ODD, st.integers(4, 30))
def test_rows_of_words_fit_and_lose_nothing_but_spaces(text: str, width: int):
    rows = [text[start:end] for start, end in rows_of_words(text, width)]
    assert all(cell_len(row.rstrip()) <= width for row in rows)
    assert "".join(rows).replace(" ", "") == text.replace(" ", "")


@given(ODD, st.integers(4, 30))
def test_rows_of_cells_fit_and_lose_nothing(text: str, width: int):
    rows = [text[start:end] for start, end in rows_of_cells(text, width)]
    assert all(cell_len(row) <= width for row in rows)
    assert "".join(rows) == text


def test_wide_characters_break_where_a_row_is_full():
    assert [end - start for start, end in rows_of_words("日本語日本語", 5)] == [2, 2, 2]


def test_an_emoji_family_is_never_cut_in_two():
    family = "👨‍👩‍👧"
    assert cells_fit(family * 3, 5) == 2 * len(family)


def test_long_text_is_cut_into_pieces_that_make_the_whole():
    text = "word " * 5000
    assert "".join(pieces(text)) == text
    assert max(map(len, pieces(text))) <= module.LONGEST_PIECE


def test_one_line_says_that_it_was_cut():
    assert one_line("one\ntwo three", 8) == "one two…"
    assert one_line("short", 8) == "short"
