"""The names of what keys do in the terminal interface, for the table `[ui.keys]`.

They stand here too, because settings are read by commands that load no interface; a test compares.
"""

from agent.config.text import closest

_IN_THE_CONVERSATION = (
    "up", "down", "page-up", "page-down", "begin", "end", "previous", "next", "toggle", "copy", "copy-code",
    "reasoning", "leave",
)  # fmt: skip
UI_ACTIONS = (
    "send", "send-later", "newline", "older", "newer", "complete", "interrupt", "end", "search-history",
    "editor", "scroll-up", "scroll-down", "paste", "stop", "next-mode", "palette", "help", "turns",
    *(f"conversation.{name}" for name in _IN_THE_CONVERSATION),
)  # fmt: skip


def check_keys(keys: dict[str, str]) -> dict[str, str]:
    """`keys` as they are. Raises ValueError where one of the names is none, with the closest that is."""
    for name in keys:
        if name not in UI_ACTIONS:
            guess = closest(name, list(UI_ACTIONS))
            raise ValueError(
                f"has no {name!r}; " + (f"did you mean '{guess}'?" if guess else "/keys lists the names")
            )
    return keys
