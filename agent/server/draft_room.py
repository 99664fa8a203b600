"""A draft is checked in one batch, together with the token before it.

llama-server ends with an assertion, in the middle of a reply, where the batch is too small for that
(`handle_last_sampled_token` in its server-context.cpp).
"""

from collections.abc import Mapping
from typing import Any

_NGRAM_MOD_N_MAX = 64
"""llama.cpp's default for ngram-mod, and the longest of all kinds."""


def with_room_for_drafts(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """A profile's table, its `batch` raised to hold the longest draft. Wrong values stay as they are."""
    batch, drafting = table.get("batch"), table.get("speculation")
    if not isinstance(batch, int) or not isinstance(drafting, Mapping):
        return table
    kinds = drafting.get("kind") or ()
    kinds = [kinds] if isinstance(kinds, str) else [*kinds, *(drafting.get("also") or ())]
    if not kinds or kinds == ["none"]:
        return table
    lengths = [drafting.get(key) for key in ("n_max", "ngram_n_max", "size_m")]
    if "ngram-mod" in kinds and drafting.get("ngram_n_max" if len(kinds) > 1 else "n_max") is None:
        lengths.append(_NGRAM_MOD_N_MAX)
    needed = 1 + max((length for length in lengths if isinstance(length, int)), default=_NGRAM_MOD_N_MAX)
    return {**table, "batch": needed} if batch < needed else table
