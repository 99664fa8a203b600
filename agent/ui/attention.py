"""Telling a person who looks elsewhere that a long turn ended, or that it asks something."""

from collections.abc import Mapping

from agent.ui.options import Notify
from agent.ui.text import one_line


def signal(how: Notify, text: str, environment: Mapping[str, str]) -> str:
    """The characters to send to the terminal.

    `desktop` uses OSC 9 (iTerm2, Windows Terminal, WezTerm, kitty) and OSC 777 (urxvt, foot, Ghostty). A
    terminal that knows only one ignores the other; those known to take both get one.
    """
    if how == "off":
        return ""
    if how == "bell":
        return "\a"
    body = one_line(text, 120).replace(";", ",")
    program = environment.get("TERM_PROGRAM", "")
    osc9, osc777 = f"\x1b]9;{body}\x07", f"\x1b]777;notify;agent;{body}\x07"
    if program in ("iTerm.app", "WezTerm", "kitty") or environment.get("WT_SESSION"):
        sequence = osc9
    elif program == "ghostty" or environment.get("TERM", "").startswith(("foot", "rxvt")):
        sequence = osc777
    else:
        sequence = osc9 + osc777
    if environment.get("TMUX"):
        sequence = "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    return "\a" + sequence
