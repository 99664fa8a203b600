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
