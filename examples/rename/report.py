"""A table of what one unit of each currency is worth."""

import rates


def report(currencies: list[str]) -> str:
    lines = [f"{currency:<4}{rates.get_rate(currency):>8.4f}" for currency in sorted(currencies)]
    return "\n".join(lines)
