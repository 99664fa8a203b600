"""Figures and foreign text made fit for a terminal."""

from agent.ui.conversation.text import visible


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
