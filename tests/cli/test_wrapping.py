import io
import os
import pty
from collections.abc import Iterator
from typing import TextIO

import pytest

from agent.cli.wrapping import terminal_width, wrapped


@pytest.fixture
def terminal() -> Iterator[TextIO]:
    master, slave = pty.openpty()
    with os.fdopen(slave, "w", encoding="utf-8") as stream:
        yield stream
    os.close(master)


def test_breaks_between_words_and_hangs_the_rest() -> None:
    line = "  label       one two three four"
    assert wrapped(line, 24, hang=14) == "  label       one two\n              three four"


def test_never_breaks_a_path_that_can_be_copied() -> None:
    assert wrapped("see /a/very/long-path/to/it", 10, hang=2) == "see\n  /a/very/long-path/to/it"


def test_counts_what_stands_before_the_text() -> None:
    assert wrapped("one two three", 16, hang=8, begin=8) == "one two\n        three"


def test_leaves_a_line_alone_that_goes_to_no_terminal() -> None:
    line = "word " * 100
    assert wrapped(line, terminal_width(io.StringIO()), hang=4) == line


def test_takes_the_width_of_the_terminal(terminal: TextIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    assert terminal_width(terminal) == 72
