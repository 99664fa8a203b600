"""Existing files and folders that deny rules keep from being read, for a sandbox to hide."""

import os
from collections.abc import Iterator
from pathlib import Path

from agent.permissions.paths import Place, is_within, locate
from agent.permissions.rules import Rule, Rules
from agent.permissions.walk import Walk

_MOST_PLACES = 200


def unreadable_places(rules: Rules, workspace: Path) -> tuple[Path, ...]:
    """What of the workspace the deny rules for reading are about, links resolved.

    A rule about all below a folder gives the folder. Wildcards are looked up among a bounded number of files.
    A rule that is about the workspace as a whole gives nothing, as no command could work then.
    """
    walk = Walk()
    found: dict[Path, None] = {}
    for rule in rules.about_files("read"):
        if rule.verdict == "deny" and rule.path is not None:
            for place in _places(rule, workspace, walk):
                found[Path(place)] = None
                if len(found) == _MOST_PLACES:
                    return tuple(found)
    return tuple(found)


def _places(rule: Rule, workspace: Path, walk: Walk) -> Iterator[str]:
    if rule.path is None:
        return
    root = os.path.realpath(workspace)
    start = os.path.realpath(rule.path.start(workspace))
    if is_within(root, start):
        if rule.path.is_whole:
            return
        start = root
    if not is_within(start, root) or not os.path.lexists(start):
        return
    if rule.path.is_whole or not Path(start).is_dir():
        yield start
        return
    for entry in walk.files(start, frozenset({".git"})):
        real = os.path.realpath(entry.path) if entry.is_symlink() else entry.path
        place = (
            locate(entry.path, workspace, workspace)
            if entry.is_symlink()
            else Place(real, real, real, inside=True, secret=False, protected=False)
        )
        if rule.path.touches(place, workspace) and is_within(real, root) and os.path.lexists(real):
            yield real
