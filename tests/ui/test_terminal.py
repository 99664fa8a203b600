"""What is sent to the terminal besides the screen."""

import base64

import pytest
from textual import events
from textual._xterm_parser import XTermParser

from agent.ui import terminal_keys
from agent.ui.attention import signal
from agent.ui.clipboard import MOST_BYTES, Clipboard, osc52
from agent.ui.editor import editor_command
from agent.ui.themes import DARK, LIGHT, theme_for


@pytest.mark.parametrize(
    ("sequence", "key"),
    [("\x1b\r", "alt+enter"), ("\x1b[13;2u", "shift+enter"), ("\x1b[13;3u", "alt+enter"), ("\r", "enter")],
)
def test_enter_with_a_modifier_is_known_as_every_terminal_sends_it(sequence: str, key: str):
    terminal_keys.teach()
    parsed = list(XTermParser(False).feed(sequence))
    assert [event.key for event in parsed if isinstance(event, events.Key)] == [key]


def test_copying_sends_the_text_in_base64():
    assert osc52("hällo", {}) == f"\x1b]52;c;{base64.b64encode('hällo'.encode()).decode()}\x07"


def test_tmux_gets_the_sequence_for_itself_and_to_pass_on():
    sequence = osc52("x", {"TMUX": "/tmp/1"})
    assert sequence.startswith("\x1b]52;")
    assert "\x1bPtmux;\x1b\x1b]52;" in sequence


def test_a_text_too_long_for_terminals_is_not_sent():
    sent: list[str] = []
    assert Clipboard(sent.append, {"SSH_TTY": "x"}).copy("x" * (MOST_BYTES + 1)) == ""
    assert sent == []


def test_over_ssh_only_the_terminal_is_asked():
    sent: list[str] = []
    clipboard = Clipboard(sent.append, {"SSH_TTY": "x", "DISPLAY": ":0"}, find=lambda _: "/bin/false")
    assert clipboard.copy("x") == "by the terminal"
    assert len(sent) == 1


def test_line_mode_copies_by_a_program_or_not_at_all():
    assert Clipboard(None, {}, find=lambda _: None).copy("hello") == ""


def test_the_bell_is_one_character():
    assert signal("bell", "done", {}) == "\a"


def test_a_notice_can_be_switched_off():
    assert signal("off", "done", {}) == ""


def test_a_desktop_notice_cannot_be_ended_early_by_its_text():
    sequence = signal("desktop", "a\x07b;c\x1b\\", {"TERM_PROGRAM": "iTerm.app"})
    assert sequence == "\a\x1b]9;a␇b,c␛\\\x07"


def test_the_theme_follows_the_background_that_the_terminal_names():
    assert [theme_for("", {"COLORFGBG": "0;15"}), theme_for("auto", {})] == [LIGHT.name, DARK.name]


def test_a_chosen_theme_wins():
    assert [theme_for("light", {}), theme_for("nord", {"COLORFGBG": "0;15"})] == [LIGHT.name, "nord"]


def test_an_editor_may_have_options():
    assert editor_command({"EDITOR": "code --wait", "VISUAL": ""}) == ["code", "--wait"]
