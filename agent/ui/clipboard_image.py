"""The image in the clipboard of this machine, as PNG. Over ssh there is none: it is on the other machine."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from agent.ui.entry.files import write_private

_PNG = b"\x89PNG\r\n\x1a\n"
_SECONDS = 5.0
_MOST_BYTES = 10 * 1024 * 1024
_KEPT_FILES = 20

Run = Callable[[tuple[str, ...]], bytes]


def command_for(
    environment: Mapping[str, str],
    find: Callable[[str], str | None] = shutil.which,
    platform: str = sys.platform,
) -> tuple[str, ...]:
    """The command that writes the clipboard's image to its output; empty where there is none."""
    if environment.get("WAYLAND_DISPLAY") and find("wl-paste"):
        return ("wl-paste", "--no-newline", "--type", "image/png")
    if environment.get("DISPLAY") and find("xclip"):
        return ("xclip", "-selection", "clipboard", "-t", "image/png", "-o")
    if platform == "darwin" and find("pngpaste"):
        return ("pngpaste", "-")
    return ()


def image_in_clipboard(environment: Mapping[str, str], run: Run | None = None) -> bytes:
    """The image, empty where there is none. Waits for a program, so call it in a thread.

    `run` gives the output of a command; by default it is started.
    """
    command = command_for(environment) if run is None else ("clipboard",)
    content = (run or output_of)(command) if command else b""
    return content if content.startswith(_PNG) and len(content) <= _MOST_BYTES else b""


def output_of(command: tuple[str, ...]) -> bytes:
    """What the command writes; nothing where it fails."""
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=_SECONDS, stdin=subprocess.DEVNULL, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return b""
    return done.stdout if done.returncode == 0 else b""


def save_image(content: bytes, folder: Path, stamp: str) -> Path | None:
    """Keeps the image in `folder`, with the last ones before it; None where it cannot be written."""
    path = folder / f"clipboard-{stamp}.png"
    if not write_private(path, content):
        return None
    for old in sorted(folder.glob("clipboard-*.png"))[:-_KEPT_FILES]:
        old.unlink(missing_ok=True)
    return path
