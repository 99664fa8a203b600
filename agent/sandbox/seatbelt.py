"""The profile for `sandbox-exec` of macOS, where of several rules about a thing the last one wins."""

from collections.abc import Sequence
from pathlib import Path

from agent.sandbox.policy import UNSET_VARIABLES, Policy, variables_elsewhere

PROGRAM = "/usr/bin/sandbox-exec"

_NAME_SERVICE = "/private/var/run/mDNSResponder"
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/dtracehelper", "/dev/tty")


def seatbelt_arguments(policy: Policy, arguments: Sequence[str]) -> list[str]:
    """The command line that runs `arguments` confined."""
    variables = [f"{name}={value}" for name, value in variables_elsewhere(policy).items()]
    unset = [word for name in UNSET_VARIABLES for word in ("-u", name)]
    return [PROGRAM, "-p", seatbelt_profile(policy), "/usr/bin/env", *unset, *variables, *arguments]


def seatbelt_profile(policy: Policy) -> str:
    """The profile's text: everything may be read but secrets, little may be written."""
    return "\n".join(
        [
            "(version 1)",
            "(deny default)",
            "(allow process-exec process-fork)",
            "(allow signal (target same-sandbox))",
            "(allow sysctl-read)",
            "(allow ipc-posix-sem ipc-posix-shm)",
            "(allow pseudo-tty)",
            "(allow file-read*)",
            *_about_places(policy),
            *_about_moving(policy),
            f"(allow file-write-data {' '.join(f'(literal {_quoted(name)})' for name in _DEVICES)})",
            *_about_network(policy.network),
        ]
    )


def _about_places(policy: Policy) -> list[str]:
    """Outer folders come before inner ones, as with bubblewrap: the rule for the innermost is what counts."""
    rules = [
        *((path, "deny file-read* file-write*") for path in policy.hidden),
        *((path, "allow file-read*") for path in policy.readable),
        *((path, "allow file-read* file-write*") for path in (*policy.all_writable, policy.temporary)),
        *((path, "deny file-write*") for path in policy.kept),
        *((path, "deny file-read* file-write*") for path in policy.unreadable),
    ]
    rules.sort(key=lambda rule: len(rule[0].parts))
    return [f"({words} {_below(path)})" for path, words in rules]


def _about_moving(policy: Policy) -> list[str]:
    """Rules go by names: a folder with something closed in it would be open under another one.

    So what leads there cannot be moved, or removed, out of a folder that may be changed.
    """
    opened = (*policy.all_writable, policy.temporary)
    fixed = dict.fromkeys(opened)
    for path in (*policy.hidden, *policy.kept, *policy.unreadable):
        above = (folder for folder in path.parents if any(folder.is_relative_to(place) for place in opened))
        fixed.update(dict.fromkeys(above))
    return [f"(deny file-write-unlink (literal {_quoted(str(path))}))" for path in fixed]


def _about_network(allowed: bool) -> list[str]:
    """Sockets in files lead to programs outside, docker for instance; names are looked up by one of them."""
    if not allowed:
        return ["(deny network*)"]
    return [
        "(allow mach-lookup)",
        "(allow network*)",
        "(deny network-outbound (remote unix-socket))",
        f"(allow network-outbound (literal {_quoted(_NAME_SERVICE)}))",
    ]


def _below(path: Path) -> str:
    return f"(subpath {_quoted(str(path))})"


def _quoted(text: str) -> str:
    """A string of the profile's language: these two signs have to be escaped, and no others may be."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
