"""Commands about the interface: theme, keys, turns, help, quit."""

from agent.core.errors import UsageError
from agent.ui.commands.command import Command, Host
from agent.ui.keys import for_people
from agent.ui.text import one_line
from agent.ui.widgets.menu import Choice

_MOST_KEYS = 2
_LONGEST_WHAT = 29


async def theme(host: Host, argument: str) -> None:
    known = host.themes()
    if argument:
        if argument not in known:
            raise UsageError(f"there is no theme '{one_line(argument, 30)}'", "/theme shows all of them")
        host.use_theme(argument)
        return
    chosen = await host.pick("Theme", [Choice(name, name) for name in known])
    if chosen is not None:
        host.use_theme(chosen.value)


async def turns(host: Host, _argument: str) -> None:
    host.show_turns()


def _first_keys(pressed: str) -> str:
    """The keys as people write them, no more than fit beside what they do in 80 columns."""
    return ", ".join(for_people(key.strip()) for key in pressed.split(",")[:_MOST_KEYS])


async def keys(host: Host, _argument: str) -> None:
    rows = host.key_table()
    table = [(_first_keys(pressed), one_line(what, _LONGEST_WHAT), name) for name, pressed, what in rows]
    wide = max(len(pressed) for pressed, _, _ in table)
    lines = [f"{pressed.ljust(wide)}  {what.ljust(_LONGEST_WHAT)}  {name}" for pressed, what, name in table]
    remap = 'To change a key, name it in config.toml:\n\n[ui.keys]\nsend-later = "ctrl+s"'
    host.show_page("Keys", "\n".join([*lines, "", remap]))


async def leave(host: Host, _argument: str) -> None:
    host.quit()


COMMANDS = (
    Command(
        name="turns",
        summary="figures of every turn",
        run=turns,
        help="A table and small plots; e saves them as JSON, c as CSV.",
        aliases=("stats", "usage"),
    ),
    Command(
        name="theme",
        summary="colours",
        run=theme,
        takes="[name]",
        help="Without a name it shows all of them. The choice is kept in config.toml.",
    ),
    Command(
        name="keys",
        summary="what the keys do",
        run=keys,
        help="With the name of each action, for [ui.keys] in config.toml.",
    ),
    Command(
        name="quit",
        summary="end; the session can be resumed",
        run=leave,
        help="The model server goes on running; `agent server stop` ends it.",
        aliases=("exit",),
    ),
)
