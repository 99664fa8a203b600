"""Copying to the clipboard of the person's own machine, also through ssh and tmux."""

import base64
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass

MOST_BYTES = 75_000
"""Many terminals drop a longer OSC 52 sequence without a word."""

_PROGRAMS: tuple[tuple[str, ...], ...] = (
    ("wl-copy",),
    ("xclip", "-selection", "clipboard"),
    ("xsel", "--clipboard", "--input"),
    ("pbcopy",),
    ("clip.exe",),
)


def osc52(text: str, environment: Mapping[str, str]) -> str:
    """The sequence that asks a terminal to copy `text`; wrapped so that tmux or screen passes it on."""
    encoded = base64.b64encode(text.encode("utf-8")).decode("ascii")
    sequence = f"\x1b]52;c;{encoded}\x07"
    if environment.get("TMUX"):
        # Both: newer tmux takes the plain one itself (set-clipboard), older ones only pass on.
        wrapped = sequence.replace("\x1b", "\x1b\x1b")
        return f"{sequence}\x1bPtmux;{wrapped}\x1b\\"
    if environment.get("TERM", "").startswith("screen"):
        return f"\x1bP{sequence}\x1b\\"
    return sequence


@dataclass(frozen=True)
class Clipboard:
    """`write` sends to the terminal; None where nothing may be sent that is not text."""

    write: Callable[[str], None] | None
    environment: Mapping[str, str]
    find: Callable[[str], str | None] = shutil.which

    def copy(self, text: str) -> str:
        """Copies by every way there is, and says how in a few words; empty when there is none."""
        is_remote = any(self.environment.get(name) for name in ("SSH_CONNECTION", "SSH_TTY"))
        done = "" if is_remote else self._by_program(text)
        if self.write is not None and len(text.encode("utf-8")) <= MOST_BYTES:
            self.write(osc52(text, self.environment))
            return done or "by the terminal"
        return done

    def _by_program(self, text: str) -> str:
        has_display = any(self.environment.get(name) for name in ("WAYLAND_DISPLAY", "DISPLAY"))
        for program in _PROGRAMS:
            if program[0] in ("wl-copy", "xclip", "xsel") and not has_display:
                continue
            if self.find(program[0]) is None:
                continue
            try:
                subprocess.run(
                    program,
                    input=text.encode("utf-8"),
                    check=True,
                    timeout=3,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            except (OSError, subprocess.SubprocessError):
                continue
            return f"by {program[0]}"
        return ""
