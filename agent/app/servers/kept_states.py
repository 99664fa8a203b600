"""The states of slots on disk, for the commands that list and delete them."""

from collections import Counter
from contextlib import suppress

from agent.app.servers.early import notes_folder, states_folder
from agent.server.slot_states import all_states, delete, remove_leftovers


def state_lines() -> list[str]:
    """A line for each server that has states, the largest last, and one for all."""
    sizes: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    for folder, state in all_states(states_folder()):
        sizes[folder.name] += state.size
        counts[folder.name] += 1
        tokens[folder.name] += state.tokens
    lines = [
        f"{name[:12]}  {counts[name]} state{'' if counts[name] == 1 else 's'}, "
        f"{tokens[name]} tokens, {size / 1e6:.0f} MB"
        for name, size in sorted(sizes.items(), key=lambda one: one[1])
    ]
    if len(lines) > 1:
        lines.append(f"all  {sum(counts.values())} states, {sum(sizes.values()) / 1e6:.0f} MB")
    return lines


def delete_all_states() -> int:
    """Deletes all states, what was left of some, and all notes; returns how many states there were."""
    count = 0
    for folder, state in all_states(states_folder()):
        delete(folder, state.name)
        count += 1
    remove_leftovers(states_folder())
    for path in notes_folder().glob("*.json"):
        with suppress(OSError):
            path.unlink(missing_ok=True)
    return count


def delete_states_of_removed_sessions() -> None:
    """Deletes the states of sessions that are gone; looking at all of them does it."""
    for _ in all_states(states_folder()):
        continue
