"""Figures and foreign text made fit for a terminal."""

import unicodedata

_KEPT = frozenset("\n\t")


def visible(text: str) -> str:
    """`text` with everything that a terminal would act on, or that hides or reorders text, made visible.

    Control characters become their pictures (`␛`), direction marks and other invisible characters `‹202E›`.
    Line ends and tabs stay.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(character if _is_harmless(character) else _picture(character) for character in text)


def one_line(text: str, limit: int = 200) -> str:
    """`text` on one line of at most `limit` characters, with a mark where it was cut."""
    flat = visible(" ".join(text[: limit * 4].split()))
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def count(number: float) -> str:
    """A number of tokens in at most four characters or so: `812`, `1.2k`, `33k`, `1.1M`."""
    if number < 1000:
        return str(int(number))
    if number < 9_950:
        return f"{number / 1000:.1f}k"
    if number < 999_500:
        return f"{number / 1000:.0f}k"
    return f"{number / 1_000_000:.1f}M"


def rate(tokens_per_second: float) -> str:
    """A rate with three significant digits at most: `7.42`, `42.1`, `310`."""
    if tokens_per_second < 9.995:
        return f"{tokens_per_second:.2f}"
    if tokens_per_second < 99.95:
        return f"{tokens_per_second:.1f}"
    return f"{tokens_per_second:,.0f}"


def duration(seconds: float) -> str:
    """`7 s`, `2:05`, `1:02:05`."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}:{rest:02}"
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def size(number: float) -> str:
    """A number of bytes for people: `812 B`, `1.09 GB`."""
    if number < 1000:
        return f"{number:.0f} B"
    for unit, bytes_each in (("kB", 1e3), ("MB", 1e6), ("GB", 1e9)):
        value = number / bytes_each
        if value < 9.995:
            return f"{value:.2f} {unit}"
        if value < 999.5 or unit == "GB":
            return f"{value:.0f} {unit}" if value >= 99.5 else f"{value:.1f} {unit}"
    return f"{number:.0f} B"


def share(part: float) -> str:
    return f"{part * 100:.0f} %"


def _is_harmless(character: str) -> bool:
    if character in _KEPT:
        return True
    category = unicodedata.category(character)
    # The joiner of emoji and the selectors of their look are part of ordinary text.
    return category[0] != "C" or character == "\u200d"


def _picture(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    return f"‹{code:04X}›"
