"""Amounts of money in another currency."""

from rates import get_rate


def convert(amount: float, source: str, target: str) -> float:
    """`amount` of the source currency in the target currency, rounded to cents."""
    return round(amount * get_rate(source) / get_rate(target), 2)
