"""All slash commands, and how a line becomes one of them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent.core.errors import UsageError
from agent.core.likeness import most_alike
from agent.ui.commands import look, machine, mcp, rewind, session
from agent.ui.commands.command import Command, Host
from agent.ui.entry.fuzzy import best
from agent.ui.keys import for_people
from agent.ui.text import one_line
from agent.ui.widgets.menu import Choice


async def show_help(host: Host, argument: str) -> None:
    if argument:
        command = find(argument.removeprefix("/"))
        more = f"\n{command.help}" if command.help else ""
        also = f"\nalso: {', '.join('/' + alias for alias in command.aliases)}" if command.aliases else ""
        host.tell(f"{command.usage}\n{command.summary}{more}{also}")
        return
    wide = max(len(command.usage) for command in ALL)
    lines = [f"{command.usage.ljust(wide)}  {command.summary}" for command in ALL]
    pages = [*_keys(host), "", *_TYPING, "", *lines]
    host.show_page("Help · Esc closes", "\n".join(pages))


_KEYS = (
    ("send", "sends; while the model works it steers the running turn"),
    ("newline", "a new line; so does \\ and Enter"),
    ("interrupt", "interrupts, and gives queued text back"),
    ("send-later", "queues for after this turn"),
    ("next-mode", "the next permission mode: plan, ask, accept edits, auto"),
    ("complete", "goes to an open question or the conversation; Esc comes back"),
    ("stop", "copies what is selected, clears, interrupts; twice quits"),
)


def _keys(host: Host) -> list[str]:
    """The keys that matter most, as they are set now."""
    pressed = {name: keys for name, keys, _ in host.key_table()}
    shown = [(pressed[name].partition(",")[0].strip(), what) for name, what in _KEYS if name in pressed]
    return [f"{for_people(key).ljust(_FIRST_CELLS)}{what}" for key, what in shown]


_FIRST_CELLS = 14
_TYPING = (
    "@path         a file or folder; @path:10-20 only these lines",
    "!command      runs a shell command, and the model sees its output",
    "!!command     the same, kept away from the model",
    "/keys         all keys",
)

HELP = Command(
    name="help",
    summary="this list, or one command",
    run=show_help,
    takes="[command]",
    help="F1 shows the list too.",
)
ALL: Sequence[Command] = sorted(
    (HELP, *session.COMMANDS, *rewind.COMMANDS, *machine.COMMANDS, *mcp.COMMANDS, *look.COMMANDS),
    key=lambda command: command.name,
)


_LEAST_LIKENESS = 0.65
"""A swapped or missing letter is more alike than this; words that only share letters are less."""


def find(name: str) -> Command:
    """The command of that name or alias.

    Raises:
        UsageError: there is none; names the closest one.
    """
    for command in ALL:
        if name == command.name or name in command.aliases:
            return command
    names = [known for command in ALL for known in (command.name, *command.aliases)]
    starts = [known for known in names if name and known.startswith(name)]
    guess = starts[0] if starts else most_alike(name, names, cutoff=_LEAST_LIKENESS)
    raise UsageError(
        f"there is no command /{one_line(name, 30)}",
        f"did you mean /{guess}?" if guess else "/help lists them",
    )


def parse(line: str) -> tuple[Command, str]:
    """The command in a line such as `/resume 3f2`, and its argument.

    Raises:
        UsageError: there is no such command, its argument is missing, or it takes none.
    """
    name, _, argument = line.strip().removeprefix("/").partition(" ")
    command = find(name)
    if command.needs_argument and not argument.strip():
        raise UsageError(f"{command.usage}: {command.takes} is missing")
    if argument.strip() and not command.takes:
        # Ignored, `/undo 3` would do something else than what was meant.
        said = one_line(argument.strip(), 30)
        raise UsageError(
            f"/{command.name} takes nothing behind it, but there is {said!r}",
            f"/help {command.name} says what it does",
        )
    return command, argument.strip()


async def run_line(host: Host, line: str) -> None:
    """Runs a line such as `/resume 3f2`. What is no command here may be a custom one, or a skill.

    Raises:
        AgentError: it is neither, an argument is missing, or the command failed.
    """
    try:
        command, argument = parse(line)
    except UsageError as unknown:
        name, _, rest = line.strip().removeprefix("/").partition(" ")
        if any(name in (known.name, *known.aliases) for known in ALL):
            raise
        try:
            text = await host.service("expand", name=name, arguments=rest.strip())
        except UsageError:
            if ":" in name:  # the name of a server and one of its prompts: it knows what is wrong
                raise
            raise unknown from None
        host.ask_model(str(text))
        return
    await command.run(host, argument)


_COMMAND = re.compile(r"/[A-Za-z][\w-]*(?::[\w-]+)*")


def looks_like_command(text: str) -> bool:
    """Whether a message is a command: a path such as `/etc/hosts is wrong` is not."""
    word = text.partition("\n")[0].split(" ", 1)[0]
    return _COMMAND.fullmatch(word) is not None and "\n" not in text.strip()


def choices(query: str, limit: int = 40) -> list[Choice]:
    """Commands that fit what was typed after the slash."""
    by_name = {command.name: command for command in ALL}
    alias_of = {alias: command.name for command in ALL for alias in command.aliases}
    names = best(query, list(by_name), limit)
    if query:
        aliases = best(query, list(alias_of), limit)
        names = [*aliases, *names] if query in alias_of else [*names, *aliases]
    found = list(dict.fromkeys(alias_of.get(name, name) for name in names))
    return [choice(by_name[name]) for name in found]


@dataclass(frozen=True, slots=True)
class CustomCommand:
    """One that the project or the person brought along. `takes` names its arguments, empty without any."""

    name: str
    summary: str
    takes: str


def custom_choices(query: str, known: Sequence[CustomCommand], limit: int = 40) -> list[Choice]:
    """Custom commands and skills that fit what was typed after the slash."""
    taken = {name for command in ALL for name in (command.name, *command.aliases)}
    by_name = {one.name: one for one in known if one.name not in taken}
    found = [by_name[name] for name in best(query, list(by_name), limit)]
    return [
        Choice(
            f"/{one.name} " if one.takes else f"/{one.name}",
            one_line(f"/{one.name} {one.takes}".rstrip(), 40),
            one_line(one.summary, 100),
        )
        for one in found
    ]


def choice(command: Command) -> Choice:
    value = f"/{command.name} " if command.needs_argument else f"/{command.name}"
    return Choice(value, command.usage, command.summary)
