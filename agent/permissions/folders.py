"""Which folders the commands of a line may run in, as `cd` moves them."""

from dataclasses import dataclass
from pathlib import Path

from agent.permissions.paths import locate
from agent.permissions.words import Script, SimpleCommand

_MAX_FOLDERS = 32


@dataclass(frozen=True, slots=True)
class Folders:
    """Every folder that a command of the line may start in; `problem` says why they cannot be known."""

    possible: tuple[Path, ...]
    problem: str | None = None


def possible_folders(script: Script, workspace: Path) -> Folders:
    """Follows each `cd`, which may work or fail, in every folder that was possible before."""
    folders = [workspace]
    for command in script.commands:
        if command.name not in {"cd", "pushd", "popd"}:
            continue
        problem = _move(command, folders, workspace)
        if problem is None and script.has_loop:
            problem = "it changes folder in a loop"
        if problem is not None:
            return Folders((workspace,), problem)
    return Folders(tuple(folders))


def _move(command: SimpleCommand, folders: list[Path], workspace: Path) -> str | None:
    targets = [word for word in command.words[1:] if word.literal not in {"-P", "-L", "-e", "--"}]
    target = targets[0].literal if len(targets) == 1 else None
    if command.name == "popd" or target is None or target == "" or target.startswith(("-", "+")):
        return f"where {command.text} leads is only known when it runs"
    for folder in list(folders):
        place = locate(target, folder, workspace)
        if not place.inside:
            return f"{command.text} leaves the workspace"
        for path in (Path(place.lexical), Path(place.real)):
            if path not in folders:
                folders.append(path)
    return f"it changes folder too often: {command.text}" if len(folders) > _MAX_FOLDERS else None
