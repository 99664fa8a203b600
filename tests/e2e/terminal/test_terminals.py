"""Terminals of all kinds: sizes that change, no colours, no screen, no UTF-8."""

import os
import re
import signal

import pytest

from tests.conftest import StartServer
from tests.e2e.conftest import Place
from tests.e2e.terminal.conftest import OpenTerminal, said
from tests.e2e.terminal.rig import CONTROL_C, CONTROL_D, ENTER

pytestmark = pytest.mark.timeout(180)

_ATTRIBUTES = re.compile(rb"\x1b\[([\d;]*)m")
# Bold, dim, italic, underlined, reversed, struck, and their ends.
_WITHOUT_COLOUR = {0, 1, 2, 3, 4, 7, 9, 21, 22, 23, 24, 27, 29}


def test_no_size_loses_text_or_the_input_field(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    place.use(scripted_server("A sentence that is long enough to need more than one row. " * 2).url)
    screen = terminal(size=(80, 24))
    screen.until_ready()
    screen.say("Talk")
    screen.until("tok/s")
    screen.type("kept")
    for columns, rows in ((200, 60), (40, 12), (20, 5), (120, 36)):
        screen.resize(columns, rows)
        screen.until(lambda: screen.prompt == "kept")
    screen.until("more than one row. A")
    screen.until("Talk")
    assert len(screen.rows) == 36
    screen.until(lambda: screen.rows[-1].strip().startswith("ask"))


def test_one_that_is_stopped_and_continued_takes_every_key_and_ends(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    place.use(scripted_server("Here.").url)
    screen = terminal()
    screen.until_ready()
    for number in (signal.SIGSTOP, signal.SIGCONT) * 3:
        os.kill(screen.pid, number)
    screen.say("Are you there")
    screen.until("Here.")
    assert screen.quit() == 0
    assert screen.is_restored


def test_no_colour_is_sent_where_none_is_wanted_and_the_cursor_is_reversed(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    place.use(scripted_server("```python\nprint('plain')\n```\n").url)
    screen = terminal(environment={"NO_COLOR": "1"})
    screen.until_ready()
    screen.say("Show it")
    screen.until("print('plain')")
    assert screen.quit() == 0
    sent = {int(code or 0) for codes in _ATTRIBUTES.findall(screen.raw) for code in codes.split(b";")}
    assert sent <= _WITHOUT_COLOUR
    assert 7 in sent


def test_a_dumb_terminal_gets_lines(place: Place, scripted_server: StartServer, terminal: OpenTerminal):
    server = scripted_server("Line by line.")
    place.use(server.url)
    screen = terminal(environment={"TERM": "dumb"})
    screen.until("line mode")
    screen.press("Speak\n")
    screen.until("Line by line.")
    screen.press(CONTROL_D)
    assert screen.wait_for_end() == 0
    assert b"\x1b" not in screen.raw
    assert said(server.chats[0])[-1].endswith("Speak")


def test_control_c_in_line_mode_interrupts_the_turn_and_then_ends(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    server = scripted_server({"fault": "pings", "text": "Let me think about it\n"})
    place.use(server.url)
    screen = terminal("--plain")
    screen.until("line mode")
    screen.press("Speak\n")
    screen.until("Let me think")
    screen.press(CONTROL_C)
    screen.until("interrupted")
    screen.until(server.chats[0].ended.is_set)
    assert server.chats[0].aborted
    screen.press(CONTROL_C)
    assert screen.wait_for_end() == 0


@pytest.mark.parametrize("arguments", [(), ("--plain",)])
def test_a_locale_without_utf8_is_no_reason_to_fail(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal, arguments: tuple[str, ...]
):
    place.use(scripted_server("Grüße – 三 🙂 end.").url)
    latin = {"LANG": "C", "LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    screen = terminal(*arguments, environment=latin)
    screen.until(lambda: "● ready" in screen.text or "session " in screen.text)
    screen.press("Hi", ENTER)
    screen.until("end.")
    screen.press(CONTROL_D)
    assert screen.wait_for_end() == 0


def test_a_control_sequence_from_a_command_is_shown_and_not_obeyed(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    place.use(scripted_server("And \x1b[2J\x1b]0;title\x07 done.").url)
    screen = terminal()
    screen.until_ready()
    screen.say(r"!printf 'before\033[2J\033[31mred\033]0;title\007after\n'")
    screen.until("after")
    screen.say("Say")
    screen.until("done.")
    assert "before" in screen.text
    assert "␛" in screen.text
    assert b"title\x07" not in screen.raw
