"""What happens to files after edits in one session: from the settings, and from a project that is trusted."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from agent.app.turns.edited import write_back
from agent.config.load import find_project_root, project_config_file
from agent.config.model import Settings
from agent.config.trust import TrustStore
from agent.core.errors import UsageError
from agent.core.outside_text import one_line
from agent.edits.detect import OwnFormatter, own_formatters, program_folders
from agent.edits.runner import EditRunner
from agent.edits.spec import EditStep, formatter_only, steps_from

TRUST_NAME = ".agent/formatters"
"""The entry of a project's formatters in the record of trust; there is no such file."""


def edit_runner(
    workspace: Path,
    settings: Settings,
    *,
    environment: Callable[[], Mapping[str, str]],
    notify: Callable[[str], None],
) -> EditRunner:
    """Everything that is to be done after edits in `workspace`. Reads files; nothing is run yet."""
    root = find_project_root(workspace)
    steps = list(steps_from(settings.after_edit))
    own = _trusted_formatters(root) if settings.project_formatters else ()
    known = {step.name for step in steps}
    steps += [formatter_only(one.name) for one in own if one.name not in known]
    trusted = bool(steps) and (bool(own) or _trusts_config(root))
    usable: list[EditStep] = []
    for step in steps:
        if step.runs_project_code and not trusted:
            notify(f"{step.name} is left out: a project can make it run anything, and {root} is not trusted")
        else:
            usable.append(step)
    return EditRunner(
        steps=usable,
        workspace=workspace.resolve(),
        environment=environment,
        notify=notify,
        write=partial(write_back, workspace.resolve()),
        local_programs=program_folders(root) if trusted else (),
    )


def open_formatters(root: Path, environment: Mapping[str, str]) -> tuple[tuple[OwnFormatter, ...], bool]:
    """The formatters that a project asks for, unless trusted as they are; and whether there are any."""
    found = own_formatters(root)
    trusted = TrustStore.of(environment).trusts(root / TRUST_NAME, fingerprint_of(found))
    return () if trusted else found, bool(found)


def trust_formatters(root: Path, formatters: Sequence[OwnFormatter], environment: Mapping[str, str]) -> None:
    """Lets these formatters run, for as long as the project asks for no others."""
    if formatters:
        TrustStore.of(environment).trust(root / TRUST_NAME, fingerprint_of(formatters))


def is_about_formatters(entry: Path) -> bool:
    """Whether an entry of the record of trust is about a project's formatters."""
    return entry.as_posix().endswith(f"/{TRUST_NAME}")


def fingerprint_of(formatters: Sequence[OwnFormatter]) -> bytes:
    """What trust in these formatters is given to: their names and the files that ask for them."""
    return "\n".join(f"{one.name} {one.file}" for one in formatters).encode("utf-8")


def describe_formatters(formatters: Sequence[OwnFormatter]) -> list[str]:
    """What they would do, line by line, for a person to agree to."""
    if not formatters:
        return []
    lines = ["Formatters that this project configures, which would run after each edit:"]
    for one in formatters:
        code = ", and can run code of the project" if formatter_only(one.name).runs_project_code else ""
        lines.append(one_line(f"  ! {one.name} ({one.file}){code}", 200))
    return lines


def _trusted_formatters(root: Path) -> tuple[OwnFormatter, ...]:
    store = TrustStore.of(os.environ)
    try:
        if str((root / TRUST_NAME).resolve()) not in store.entries():
            return ()
        found = own_formatters(root)
        return found if store.trusts(root / TRUST_NAME, fingerprint_of(found)) else ()
    except UsageError:  # a damaged record of trust says nothing about any project
        return ()


def _trusts_config(root: Path) -> bool:
    try:
        return TrustStore.of(os.environ).trusts(root, project_config_file(root).read_bytes())
    except (OSError, UsageError):
        return False
