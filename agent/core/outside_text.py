"""Text that others wrote, such as a skill or a project's instructions, made fit for a prompt or a screen."""

import unicodedata

_LONGEST_NAME = 300
_KEPT_CONTROLS = "\n\t"
# Joiners that scripts and emoji need; every other invisible character could hide text from the person.
_KEPT_FORMATS = "\u200c\u200d"


def decoded(content: bytes) -> str | None:
    """`content` as tidy text; None where it is no text. Bytes that are no UTF-8 become question marks."""
    if b"\0" in content[:8192]:
        return None
    return tidy(content.decode("utf-8-sig", errors="replace"))


def tidy(text: str) -> str:
    """`text` with plain line ends, without a byte order mark and without characters that nobody sees."""
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if plain.isascii() and plain.isprintable():
        return plain
    return "".join(char for char in plain if _is_visible(char))


def one_line(text: str, limit: int) -> str:
    """`text` on one line of at most `limit` characters, with a mark where it was cut."""
    line = " ".join(tidy(text).split())
    return line if len(line) <= limit else line[: max(0, limit - 1)].rstrip() + "…"


def shown_name(name: str) -> str:
    """The name of a file as it can stand in a line: as it is, but for what would break or hide the line."""
    return name if name.isprintable() else one_line(name, _LONGEST_NAME)


def fenced(text: str) -> str:
    """`text` between fences that it cannot close itself."""
    fence = "```"
    while fence in text:
        fence += "`"
    end = "" if text.endswith("\n") else "\n"
    return f"{fence}\n{text}{end}{fence}"


def _is_visible(char: str) -> bool:
    category = unicodedata.category(char)
    if category == "Cc":
        return char in _KEPT_CONTROLS
    return category not in ("Cf", "Cs") or char in _KEPT_FORMATS
