"""How many tokens a server reads at once, so that it is soon free again after Esc. Pure.

llama-server looks for cancelled requests between two batches only. That a client has left is seen by the
thread that writes to it, with the progress of a batch that has just ended, or in a second without any. By
then the next batch may have begun (`server_response_reader::next`, `server_queue::yield_to_queue`, b11434): a
request ends after up to two batches, and a client cannot change that. What can be chosen is how long one
takes.
"""

from agent.server.draft_room import with_room_for_drafts
from agent.server.profile import Profile, Speculation

LEAST_BATCH = 16
"""Smaller batches take hardly less time, so they only read slower, and leave drafts too little room."""
_LENGTHS = ("n_max", "n_min", "ngram_n_max", "ngram_n_min", "size_m")
_NGRAM_MOD = {"n_max": 64, "n_min": 48}
_SIZED = ("ngram-simple", "ngram-map-k", "ngram-map-k4v")
_SIZE_M = 48
"""What llama.cpp takes for these lengths, in tokens, unless it is told."""


def fitted(profile: Profile, rate: float | None) -> Profile:
    """The profile with a batch that takes `batch_seconds` at most, and drafts that are checked in one.

    It stays as it is where the profile does not ask for that, or nothing is known.

    Args:
        rate: tokens a second of reading a prompt on this machine, None = not known.
    """
    if not profile.batch_seconds or rate is None:
        return profile
    batch = max(LEAST_BATCH, int(rate * profile.batch_seconds))
    if batch >= profile.batch:
        return profile
    speculation = _with_shorter_drafts(profile.speculation, batch - 1)
    # Kinds whose drafts cannot be made shorter keep the room that they need.
    asked = speculation.model_dump(include=set(_LENGTHS), exclude_none=True)
    roomy = with_room_for_drafts({"batch": batch, "speculation": {**asked, "kind": list(speculation.kinds)}})
    if roomy["batch"] != batch:
        batch, speculation = roomy["batch"], _with_shorter_drafts(profile.speculation, roomy["batch"] - 1)
    if batch >= profile.batch:
        return profile
    return profile.model_copy(
        update={"batch": batch, "ubatch": min(profile.ubatch, batch), "speculation": speculation}
    )


def told(profile: Profile, chosen: Profile, rate: float | None) -> str:
    """In one line what was chosen and why; empty for a profile that does not ask for it."""
    if not profile.batch_seconds:
        return ""
    if rate is None:
        return f"reads up to {profile.batch} tokens at once: the first start measures how fast that is here"
    took = f"at {rate:.0f} tok/s, as read here last, that takes {chosen.batch / rate:.2f} s"
    if chosen.batch == profile.batch:
        return f"reads {profile.batch} tokens at once: {took}"
    before, longest = _longest(profile.speculation), _longest(chosen.speculation)
    shorter = f" and drafts {longest}" if longest is not None and longest != before else ""
    return f"reads {chosen.batch} tokens at once{shorter} instead of {profile.batch}: {took}"


def _with_shorter_drafts(asked: Speculation, most: int) -> Speculation:
    changes = {
        name: most for name in _LENGTHS if (value := getattr(asked, name)) is not None and value > most
    }
    if "ngram-mod" in asked.kinds:
        prefixes = [*([""] if asked.kind == "ngram-mod" else []), *(["ngram_"] if asked.also else [])]
        for prefix in prefixes:
            for name, usual in _NGRAM_MOD.items():
                if getattr(asked, f"{prefix}{name}") is None:
                    changes[f"{prefix}{name}"] = min(usual, most)
    if asked.size_m is None and not set(_SIZED).isdisjoint(asked.kinds):
        changes["size_m"] = min(_SIZE_M, most)
    return asked.model_copy(update=changes)


def _longest(speculation: Speculation) -> int | None:
    lengths = (speculation.n_max, speculation.ngram_n_max, speculation.size_m)
    return max((one for one in lengths if one is not None), default=None)
