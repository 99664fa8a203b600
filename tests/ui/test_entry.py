"""What stands behind the input field."""

import os
from pathlib import Path

import pytest

from agent.ui.entry.completion import Completable, completable, mention, with_folders
from agent.ui.entry.draft import Draft, DraftFile
from agent.ui.entry.fuzzy import best, positions
from agent.ui.entry.history import MOST_ENTRIES, InputHistory
from agent.ui.entry.pastes import Pastes, normalised

FILES = ["src/app.py", "src/apple/core.py", "tests/test_app.py", "docs/api.md", "README.md"]


def test_a_file_whose_name_begins_with_the_query_comes_first():
    assert best("app", FILES, 5)[0] == "src/app.py"


def test_letters_in_order_are_enough_to_be_found():
    assert "tests/test_app.py" in best("ttapp", FILES, 5)


def test_names_without_the_letters_are_left_out():
    assert best("zzz", FILES, 5) == []


def test_an_empty_query_gives_the_first_names_as_they_come():
    assert best("", FILES, 2) == FILES[:2]


def test_a_huge_list_gives_no_more_than_was_asked_for():
    assert len(best("f", [f"folder/file{number}.py" for number in range(100_000)], 40)) == 40


def test_signs_of_regular_expressions_in_a_query_are_only_characters():
    assert best("a+(", ["a+(b).py", "aab.py"], 5) == ["a+(b).py"]


def test_the_letters_that_fit_are_marked_in_the_last_part_first():
    assert positions("app", "apple/app.py") == [6, 7, 8]


def test_letters_that_change_length_when_lowered_are_not_marked():
    assert positions("i", "\u0130x") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/", Completable("command", "", 1)),
        ("/res", Completable("command", "res", 4)),
        ("look at @sr", Completable("file", "sr", 3)),
        ("@", Completable("file", "", 1)),
        ("first\n(@a/b", Completable("file", "a/b", 4)),
        ('@"my fi', Completable("file", "my fi", 7)),
    ],
)
def test_commands_and_mentions_can_be_completed(text: str, expected: Completable):
    assert completable(text) == expected


@pytest.mark.parametrize(
    "text", ["", "hello", "a /res", "me@home.org", "@app.py ", "/resume x", "@app.py:10-2"]
)
def test_other_text_is_left_alone(text: str):
    assert completable(text) is None


def test_a_path_with_a_space_is_mentioned_in_quotes():
    assert [mention("a b.py"), mention("a.py")] == ['@"a b.py"', "@a.py"]


def test_folders_of_all_levels_are_offered():
    assert with_folders(["a/b/c.py", "d.py"]) == ["a/", "a/b/", "a/b/c.py", "d.py"]


def test_history_survives_the_program(tmp_path: Path):
    InputHistory(tmp_path / "ui" / "h.jsonl").add("two\nlines")
    again = InputHistory(tmp_path / "ui" / "h.jsonl")
    again.load()
    assert again.entries == ["two\nlines"]


def test_lines_that_a_crash_left_broken_cost_only_themselves(tmp_path: Path):
    path = tmp_path / "h.jsonl"
    path.write_text('{"text": "one"}\n{"te\n\x00\x00\n[1]\n{"text": 5}\n{"text": "two"}\n', encoding="utf-8")
    history = InputHistory(path)
    history.load()
    assert history.entries == ["one", "two"]


def test_a_history_that_grew_too_long_is_cut(tmp_path: Path):
    path = tmp_path / "h.jsonl"
    path.write_text("".join(f'{{"text": "{n}"}}\n' for n in range(2 * MOST_ENTRIES + 5)), encoding="utf-8")
    InputHistory(path).load()
    assert len(path.read_text(encoding="utf-8").splitlines()) == MOST_ENTRIES


def test_going_through_history_comes_back_to_what_was_typed():
    history = InputHistory(None)
    history.add("one")
    history.add("two")
    steps = [
        history.older("draft"),
        history.older("two"),
        history.older("one"),
        history.newer(),
        history.newer(),
    ]
    assert steps == ["two", "one", None, "two", "draft"]


def test_a_folder_that_cannot_be_written_costs_the_history_only(tmp_path: Path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    history = InputHistory(tmp_path / "file" / "h.jsonl")
    history.add("one")
    assert history.entries == ["one"]


def test_the_same_text_twice_in_a_row_is_one_entry():
    history = InputHistory(None)
    history.add("again")
    history.add("again")
    assert history.newest_first() == ["again"]


def test_the_draft_of_a_program_that_died_comes_back_once(tmp_path: Path):
    DraftFile(tmp_path, 111).save(Draft("half a tho", {"[paste 1: 9 lines]": "x"}))
    mine = DraftFile(tmp_path, 222, alive=lambda _: False)
    assert [mine.take_abandoned(), mine.take_abandoned()] == [
        Draft("half a tho", {"[paste 1: 9 lines]": "x"}),
        None,
    ]


def test_a_draft_from_before_the_clock_was_set_back_is_the_oldest(tmp_path: Path):
    for number, text in enumerate(("older", "newer")):
        DraftFile(tmp_path, 111 + number).save(Draft(text, {}))
    os.utime(tmp_path / "draft-111.json", (4e9, 4e9))
    mine = DraftFile(tmp_path, 222, alive=lambda _: False)
    assert [mine.take_abandoned(), mine.take_abandoned()] == [Draft("newer", {}), Draft("older", {})]


def test_the_draft_of_a_program_that_runs_is_left_to_it(tmp_path: Path):
    DraftFile(tmp_path, 111).save(Draft("mine", {}))
    assert DraftFile(tmp_path, 222, alive=lambda _: True).take_abandoned() is None


def test_an_empty_draft_leaves_no_file(tmp_path: Path):
    draft = DraftFile(tmp_path, 111)
    draft.save(Draft("x", {}))
    draft.save(Draft("", {}))
    assert list(tmp_path.iterdir()) == []


def test_a_broken_draft_is_no_draft(tmp_path: Path):
    (tmp_path / "draft-111.json").write_text("{", encoding="utf-8")
    assert DraftFile(tmp_path, 222, alive=lambda _: False).take_abandoned() is None


def test_a_long_paste_becomes_a_placeholder_and_comes_back_whole():
    pastes = Pastes()
    long = "\n".join(f"line {number}" for number in range(100))
    shown = pastes.fold(long)
    assert (shown, pastes.expand(f"see {shown}!")) == ("[paste 1: 100 lines]", f"see {long}!")


def test_a_short_paste_stays_as_it_is():
    assert Pastes().fold("a\nb") == "a\nb"


def test_a_paste_that_looks_like_a_placeholder_is_not_expanded_again():
    pastes = Pastes()
    first = pastes.fold("[paste 2: 801 characters]" + "x" * 900)
    second = pastes.fold("y" * 801)
    assert pastes.expand(f"{first} {second}") == "[paste 2: 801 characters]" + "x" * 900 + " " + "y" * 801


def test_line_ends_of_every_terminal_become_one_kind():
    assert normalised("a\r\nb\rc\n") == "a\nb\nc\n"


def test_the_end_of_the_last_line_of_a_paste_begins_no_other_line():
    assert Pastes().fold("row\n" * 60) == "[paste 1: 60 lines]"
