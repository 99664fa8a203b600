"""Exchange rates to the euro, as of the last business day."""

_TO_EURO = {"EUR": 1.0, "USD": 0.92, "GBP": 1.17, "CHF": 1.05}


def get_rate(currency: str) -> float:
    """Euros for one unit of `currency`."""
    try:
        return _TO_EURO[currency.upper()]
    except KeyError:
        raise ValueError(f"no rate for {currency}") from None
