"""Which key does what, with the person's own choices on top."""

from collections.abc import Iterable, Mapping

from textual.binding import Binding, BindingType


def actions_by_key(bindings: Iterable[BindingType], chosen: Mapping[str, str]) -> dict[str, str]:
    """The action for each key. `chosen` maps a binding's id to keys with commas between them."""
    made = [binding for entry in bindings for binding in Binding.make_bindings([entry])]
    actions: dict[str, str] = {}
    for binding in made:
        if binding.id not in chosen:
            actions[binding.key] = binding.action
    # After all others, so that a chosen key wins over whatever it meant before.
    for binding in made:
        for key in chosen.get(binding.id or "", "").split(","):
            if key.strip():
                actions[key.strip()] = binding.action
    return actions


def described(bindings: Iterable[BindingType], chosen: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Id, keys and description of every binding that has a name to remap it by."""
    rows: dict[str, tuple[str, str]] = {}
    for entry in bindings:
        for binding in Binding.make_bindings([entry]):
            if not binding.id:
                continue
            keys = chosen.get(binding.id) or ", ".join(
                filter(None, [rows.get(binding.id, ("", ""))[0], binding.key])
            )
            rows[binding.id] = (keys, binding.description)
    return [(name, keys, description) for name, (keys, description) in rows.items()]


_NAMES = {
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "escape": "Esc",
    "pageup": "PgUp",
    "pagedown": "PgDn",
}


def first_keys(bindings: Iterable[BindingType], chosen: Mapping[str, str]) -> dict[str, str]:
    """The first key of each binding by its id, as people write it."""
    rows = described(bindings, chosen)
    return {name: for_people(keys.partition(",")[0].strip()) for name, keys, _ in rows}


def for_people(key: str) -> str:
    """`alt+enter` as `Alt+Enter`, `escape` as `Esc`; a single letter stays as it is."""
    parts = [_NAMES.get(part, part if len(part) == 1 else part.capitalize()) for part in key.split("+")]
    if len(parts) > 1 and len(parts[-1]) == 1:
        parts[-1] = parts[-1].upper()
    return "+".join(parts)
