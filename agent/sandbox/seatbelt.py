"""The profile for `sandbox-exec` of macOS. Later rules win there."""

import json
from collections.abc import Sequence
from pathlib import Path

from agent.sandbox.policy import UNSET_VARIABLES, Policy, variables_elsewhere

PROGRAM = "/usr/bin/sandbox-exec"

_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/dtracehelper", "/dev/tty")


def seatbelt_arguments(policy: Policy, arguments: Sequence[str]) -> list[str]:
    """The command line that runs `arguments` confined."""
    variables = [f"{name}={value}" for name, value in variables_elsewhere(policy).items()]
    unset = [word for name in UNSET_VARIABLES for word in ("-u", name)]
    return [PROGRAM, "-p", seatbelt_profile(policy), "/usr/bin/env", *unset, *variables, *arguments]


def seatbelt_profile(policy: Policy) -> str:
    """The profile's text: everything may be read but secrets, little may be written."""
    lines = [
        "(version 1)",
        "(deny default)",
        "(allow process-exec process-fork)",
        "(allow signal (target same-sandbox))",
        "(allow sysctl-read)",
        "(allow mach-lookup)" if policy.network else "",
        "(allow ipc-posix-sem ipc-posix-shm)",
        "(allow pseudo-tty)",
        "(allow file-read*)",
        *(f"(deny file-read* file-write* {_below(path)})" for path in policy.hidden),
        *(f"(allow file-read* {_below(path)})" for path in policy.readable),
        *(
            f"(allow file-read* file-write* {_below(path)})"
            for path in (*policy.all_writable, policy.temporary)
        ),
        *(f"(deny file-read* file-write* {_below(path)})" for path in _hidden_inside(policy)),
        *(f"(deny file-read* file-write* {_below(path)})" for path in policy.unreadable),
        *(f"(deny file-write* {_below(path)})" for path in policy.kept),
        f"(allow file-write-data {' '.join(f'(literal {_quoted(name)})' for name in _DEVICES)})",
        "(allow network*)" if policy.network else "(deny network*)",
        "(deny network-outbound (remote unix-socket))",
    ]
    return "\n".join(line for line in lines if line)


def _hidden_inside(policy: Policy) -> tuple[Path, ...]:
    """Secrets in what may be read or changed, a home folder for instance, stay hidden there."""
    opened = (*policy.all_writable, *policy.readable)
    return tuple(path for path in policy.hidden if any(folder in path.parents for folder in opened))


def _below(path: Path) -> str:
    return f"(subpath {_quoted(str(path))})"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
