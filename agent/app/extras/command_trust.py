"""Trust in the custom commands of a project, given by `agent trust`: for each the file that was shown."""

from collections.abc import Callable, Mapping
from pathlib import Path

from agent.app.extras.skill_shelf import from_the_repository
from agent.config.trust import TrustStore
from agent.core.errors import UsageError
from agent.core.outside_text import one_line
from agent.skills.commands import (
    PROJECT_FOLDERS,
    CustomCommand,
    command_folders,
    expand,
    find_commands,
    printed_in,
)
from agent.skills.printed import Printing, nothing_is_run, outputs_of

_LONGEST_SHOWN = 2000


def trust_in(environment: Mapping[str, str]) -> Callable[[CustomCommand], bool]:
    """Tells whose words a command is: what is in their own folders or trusted is the person's.

    A damaged record of trust says nothing about any project.
    """
    store = TrustStore.of(environment)

    def is_trusted(command: CustomCommand) -> bool:
        if command.scope != "project":
            return True
        try:
            return store.trusts(command.file, command.content)
        except UsageError:
            return False

    return is_trusted


async def worded(command: CustomCommand, arguments: str, printing: Printing = nothing_is_run) -> str:
    """The message that a command stands for, with what the commands in it print.

    One that is not trusted stays the words of the repository, and nothing in it is run.
    """
    if command.trusted:
        outputs = await outputs_of(printed_in(command.body, arguments), printing)
        return expand(command.body, arguments, outputs)
    # What the person typed is theirs, so it stands outside of the fence, too.
    wish = f"\n\n{arguments.strip()}" if arguments.strip() else ""
    said = from_the_repository(expand(command.body, arguments))
    return f"Use the command {command.name}.\n\n{said}{wish}"


def open_commands(start: Path, root: Path, environment: Mapping[str, str]) -> list[CustomCommand]:
    """The project's commands from `start` up to `root` that are not trusted as they are now. Reads files.

    Raises:
        UsageError: the record of trust is damaged.
    """
    TrustStore.of(environment).entries()
    found = find_commands(command_folders(start, root, ()), trust_in(environment))
    return [command for command in (*found.commands, *found.shadowed) if not command.trusted]


def as_lines(command: CustomCommand) -> list[str]:
    """The command as `agent trust` shows it: all of its text, as far as that is not endless."""
    text = command.body.strip()
    shown = text[:_LONGEST_SHOWN]
    lines = [one_line(line, 300) for line in shown.splitlines()]
    more = [f"… {len(text) - len(shown)} characters more in {command.file}"] if len(text) > len(shown) else []
    return [f"/{command.name}: {command.description[:100]}", *(f"    {line}" for line in [*lines, *more])]


def trust_commands(commands: list[CustomCommand], environment: Mapping[str, str]) -> None:
    store = TrustStore.of(environment)
    for command in commands:
        store.trust(command.file, command.content)


def revoke_commands(root: Path, environment: Mapping[str, str]) -> int:
    """Forgets the commands below `root`; returns how many were trusted."""
    store = TrustStore.of(environment)
    top = root.resolve()
    files = [Path(name) for name in store.entries() if is_about_command(Path(name))]
    return sum(store.revoke(file) for file in files if file.is_relative_to(top))


def is_about_command(entry: Path) -> bool:
    """Whether an entry of the record of trust is about the file of a command."""
    folders = entry.parent.as_posix() + "/"
    return entry.suffix == ".md" and any(f"/{name}/" in folders for name in PROJECT_FOLDERS)
