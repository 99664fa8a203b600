"""The kinds of sandbox in the order in which they are preferred, and what each makes of a command."""

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from agent.sandbox import seatbelt
from agent.sandbox.bwrap import bridged_arguments, bwrap_arguments, find_bwrap
from agent.sandbox.landlock import (
    LEAST_ABI,
    SCOPES_ABI,
    entry_files,
    landlock_arguments,
    landlock_version,
    scoped_arguments,
)
from agent.sandbox.policy import Policy, is_temporary
from agent.sandbox.probe import Trial, circumstances, remember, remembered, try_out
from agent.sandbox.probed import Probed


def probed(environment: Mapping[str, str], cache: Path | None = None) -> Probed:
    """The best kind that works here. Blocks for some 20 ms, or 1 ms where `cache` has the answer."""
    if sys.platform == "darwin":
        return _first(environment, [Probed("seatbelt", seatbelt.PROGRAM)], [])
    if not sys.platform.startswith("linux"):
        return Probed("none", reasons=(f"there is none for {sys.platform}",))
    program = find_bwrap(environment)
    key = circumstances(program)
    known = remembered(cache, key)
    if known is not None:
        return known
    version = landlock_version()
    candidates, reasons = [], []
    if program is not None:
        candidates.append(Probed("bubblewrap", program, version))
    else:
        reasons.append("bubblewrap: not installed")
    if version >= LEAST_ABI:
        candidates.append(Probed("landlock", "", version))
    found = _first(environment, candidates, reasons)
    if found.kind == "none" and version < LEAST_ABI:
        reason = (
            "Landlock: the kernel has none" if version == 0 else f"Landlock: version {version} is too old"
        )
        found = Probed("none", reasons=(*found.reasons, reason))
    remember(cache, key, found)
    return found


def wrapped(
    found: Probed, policy: Policy, arguments: Sequence[str], *, empty_file: Path, outlives: bool
) -> Sequence[str]:
    """The command line that runs `arguments` confined by what was found."""
    if found.kind == "none":
        return arguments
    if found.kind == "landlock":
        return landlock_arguments(policy, arguments)
    if found.kind == "seatbelt":
        return seatbelt.seatbelt_arguments(policy, arguments)
    policy = _with_hook_folders(policy)
    if policy.network and found.version >= SCOPES_ABI:
        arguments = scoped_arguments(arguments)
    if policy.way_out is not None:
        arguments = bridged_arguments(policy.way_out, arguments)
    return bwrap_arguments(
        found.program,
        policy,
        arguments,
        readable=[path for path in entry_files() if is_temporary(path)],
        empty_file=empty_file,
        outlives=outlives,
        is_root=os.geteuid() == 0,
    )


def _first(environment: Mapping[str, str], candidates: Sequence[Probed], reasons: Sequence[str]) -> Probed:
    refused = list(reasons)
    for candidate in candidates:
        problem = working(candidate, environment)
        if not problem:
            return Probed(candidate.kind, candidate.program, candidate.version, tuple(refused))
        refused.append(f"{candidate.kind}: {problem}")
    return Probed("none", reasons=tuple(refused))


def working(candidate: Probed, environment: Mapping[str, str]) -> str:
    """Why a kind of sandbox does not work here; empty where it does. Blocks while it is tried."""
    return try_out(lambda trial, words: _attempt(candidate, trial, words), environment)


def _attempt(candidate: Probed, trial: Trial, arguments: Sequence[str]) -> Sequence[str]:
    policy = Policy(
        workspace=trial.workspace,
        hidden=(trial.hidden,),
        readable=(trial.outside,),
        temporary=trial.temporary,
        network=False,
        variables={},
    )
    empty = trial.temporary / "var" / "empty"
    empty.touch()
    return wrapped(candidate, policy, arguments, empty_file=empty, outlives=False)


def _with_hook_folders(policy: Policy) -> Policy:
    """Makes the folders for hooks where there are none: what is not there cannot be closed."""
    made = []
    for folder in policy.writable:
        hooks = folder / "hooks"
        if folder.name == ".git" and (folder / "HEAD").is_file() and not hooks.exists():
            with suppress(OSError):
                hooks.mkdir()
                made.append(hooks)
    return replace(policy, kept=(*policy.kept, *made)) if made else policy
