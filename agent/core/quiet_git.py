"""How a git that only looks at a repository is started, so that the repository cannot make it do more.

A repository's own configuration can name programs for hooks, pagers, file monitors, credentials and the way
to other machines. Questions take that way too: what a partial clone lacks is fetched when somebody looks.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path

SAFE_CONFIG = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=",
    "core.pager=cat",
    "core.editor=false",
    "core.askPass=",
    "core.sshCommand=false",
    "credential.helper=",
    "diff.external=",
    "protocol.allow=never",
    "commit.gpgSign=false",
    "user.useConfigOnly=true",
    "i18n.commitEncoding=UTF-8",
    "gc.auto=0",
    "maintenance.auto=false",
    "status.renames=false",
)
"""Values for `-c`."""

# Where these come from a hook or a wrapper they are about another repository or another command.
FOREIGN_VARIABLES = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
)

QUIET_VARIABLES = {
    "LC_ALL": "C",
    "LANGUAGE": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",
    "SSH_ASKPASS": "",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "false",
    # Known from git 2.45 on.
    "GIT_NO_LAZY_FETCH": "1",
    # A list of no protocols. It beats `protocol.NAME.allow` of the repository, which beats `protocol.allow`.
    "GIT_ALLOW_PROTOCOL": "",
}


def find_git(environment: Mapping[str, str]) -> str | None:
    """The absolute path of git. A relative PATH entry is not trusted to hold it."""
    found = shutil.which("git", path=environment.get("PATH", ""))
    return found if found and Path(found).is_absolute() else None


def settings_words() -> list[str]:
    """`SAFE_CONFIG` as words behind `git`."""
    return [word for setting in SAFE_CONFIG for word in ("-c", setting)]
