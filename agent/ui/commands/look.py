"""Commands about the interface: theme, keys, turns, help, quit."""

from agent.core.errors import UsageError
from agent.ui.commands.command import Command, Host
from agent.ui.text import one_line
from agent.ui.widgets.menu import Choice


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


async def keys(host: Host, _argument: str) -> None:
    rows = host.key_table()
    names = max(len(name) for name, _, _ in rows)
    wide = max(len(pressed) for _, pressed, _ in rows)
    lines = [
        f"{pressed.ljust(wide)}  {what.ljust(36)} {name.ljust(names)}".rstrip()
        for name, pressed, what in rows
    ]
    remap = 'To change a key, name it in config.toml:\n\n[ui.keys]\nsend-later = "ctrl+s"'
    host.show_page("Keys", "\n".join([*lines, "", remap]))


async def leave(host: Host, _argument: str) -> None:
    host.quit()


COMMANDS = (
    Command(name="turns", summary="figures of every turn", run=turns),
    Command(name="theme", summary="colours", run=theme, takes="[name]"),
    Command(name="keys", summary="what the keys do", run=keys),
    Command(name="quit", summary="end; the session can be resumed", run=leave, aliases=("exit",)),
)
