"""Smoothing of a series of measurements."""


def moving_average(values: list[float], size: int) -> list[float]:
    """The mean of every `size` neighbouring values, from the first such group to the last."""
    if size < 1:
        raise ValueError("the window must hold at least one value")
    averages = []
    for start in range(len(values) - size):
        window = values[start : start + size]
        averages.append(sum(window) / size)
    return averages


def peaks(values: list[float]) -> list[int]:
    """Positions of the values that are larger than both neighbours."""
    return [
        index for index in range(1, len(values) - 1) if values[index - 1] < values[index] > values[index + 1]
    ]
