"""How big model files are that are not there yet, and roughly what a server of them needs."""

import re
from dataclasses import dataclass

from agent.server.model_file import ModelFile
from agent.server.profile import Profile

_PARAMETERS = re.compile(r"(?<![A-Za-z0-9.])(\d+(?:\.\d+)?)b(?![a-z])", re.IGNORECASE)
_BITS = {
    "IQ3_XS": 3.3, "Q3_K_S": 3.5, "Q3_K_M": 3.9, "IQ4_XS": 4.3, "IQ4_NL": 4.5, "Q4_0": 4.6, "Q4_K_S": 4.6,
    "Q4_K_M": 4.85, "Q4_1": 5.0, "Q5_0": 5.5, "Q5_K_S": 5.5, "Q5_K_M": 5.7, "Q6_K": 6.6, "Q8_0": 8.5,
    "BF16": 16.0, "F16": 16.0,
}  # fmt: skip
"""Bits per weight of whole files, as llama.cpp's quantiser makes them."""
_DRAFTER_SHARE = 1 / 16
"""DFlash and EAGLE-3 drafters are named after their target, and have a few layers of its width."""
_OVERHEAD = 1.15
_RUNTIME_BYTES = 2**30


@dataclass(frozen=True, slots=True)
class Size:
    """Bytes of a file, 0 = not known. `is_guess`: it follows from the name."""

    bytes: int
    is_guess: bool


def size_of(file: ModelFile, *, is_drafter: bool = False) -> Size:
    """How big a file is, by the profile or else by its name.

    Args:
        is_drafter: it is no model of its own, but a few layers that belong to the one it is named after.
    """
    if file.bytes:
        return Size(file.bytes, False)
    parameters = _PARAMETERS.search(file.file)
    kinds = [kind for kind in _BITS if kind.lower() in file.file.lower()]
    if parameters is None or not kinds:
        return Size(0, True)
    size = float(parameters[1]) * 1e9 * _BITS[max(kinds, key=len)] / 8
    return Size(int(size * (_DRAFTER_SHARE if is_drafter else 1)), True)


def rough_need(profile: Profile, sizes: list[int]) -> int:
    """Memory in bytes for files of these sizes, target first; 0 when one is not known.

    A rule of thumb for files whose headers cannot be read yet: context and buffers of the shipped profiles
    take about a seventh of the weights, and a server some more.
    """
    if not sizes or not all(sizes):
        return 0
    return int(sizes[0] * _OVERHEAD) + sum(sizes[1:]) + _RUNTIME_BYTES
