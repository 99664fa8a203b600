"""The environment of commands that nobody watches."""

import sys
from collections.abc import Mapping
from pathlib import Path

FOLDER_SCRIPT = Path(__file__).with_name("folder.bash")


def quiet_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for programs that nobody can answer: no pager, editor, prompt, window or colour.

    Where no locale is chosen, programs are told that text is UTF-8, as it is for the model.
    """
    quiet = {
        **environment,
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "MANPAGER": "cat",
        "SYSTEMD_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",  # empty, so that git asks neither a window nor ssh's
        "GIT_EDITOR": "true",
        "EDITOR": "true",
        "VISUAL": "true",
        "SSH_ASKPASS_REQUIRE": "never",
        "DEBIAN_FRONTEND": "noninteractive",
        "PIP_NO_INPUT": "1",
        "PYTHONUNBUFFERED": "1",
        "NO_COLOR": "1",
        "TERM": "dumb",
    }
    chosen = next((quiet[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if quiet.get(name)), "C")
    if chosen in ("C", "POSIX") and not quiet.get("LC_ALL"):
        quiet["LC_CTYPE"] = "UTF-8" if sys.platform == "darwin" else "C.UTF-8"
    return quiet


def telling_folder(environment: Mapping[str, str], descriptor: int) -> dict[str, str]:
    """The environment with which bash writes the folder that it ends in to `descriptor`."""
    return {
        **environment,
        "AGENT_BASH_ENV": environment.get("BASH_ENV", ""),
        "BASH_ENV": str(FOLDER_SCRIPT),
        "AGENT_FOLDER_FD": str(descriptor),
    }
