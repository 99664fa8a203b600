"""Where people keep what no command of a model has to see."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

_IN_HOME = (
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".my.cnf",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".vault-token",
    ".password-store",
    ".boto",
    ".s3cfg",
    ".mozilla",
    ".thunderbird",
    ".Xauthority",
    ".ICEauthority",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".1password",
    ".gem/credentials",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".terraform.d/credentials.tfrc.json",
    ".huggingface",
    ".claude.json",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".gemini",
    ".local/share/opencode/auth.json",
    ".config/github-copilot",
    ".cache/huggingface/token",
    ".cache/huggingface/stored_tokens",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".config/gcloud",
    ".config/git/credentials",
    ".config/op",
    ".config/rclone",
    ".config/containers",
    ".config/doctl",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/pypoetry/auth.toml",
    ".config/sops",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".local/share/fish/fish_history",
    "Library/Keychains",
    "Library/Cookies",
    "Library/Application Support/Google/Chrome",
    "Library/Application Support/Firefox",
)

_OF_SYSTEM = (
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/etc/docker",
    "/etc/kubernetes",
    "/var/lib/docker",
    "/var/spool/cron",
)

_NAMED_BY_VARIABLES = (
    "GNUPGHOME",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_CONFIG_FILE",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "KUBECONFIG",
    "DOCKER_CONFIG",
    "NETRC",
    "PGPASSFILE",
    "NPM_CONFIG_USERCONFIG",
    "PASSWORD_STORE_DIR",
    "SSH_AUTH_SOCK",
)


def secret_places(homes: Iterable[Path], environment: Mapping[str, str]) -> Iterator[Path]:
    """Files and folders with secrets, whether they exist or not."""
    for home in homes:
        yield from (home / name for name in _IN_HOME)
    for name in _OF_SYSTEM:
        yield Path(name)
    yield from _host_keys()
    for variable in _NAMED_BY_VARIABLES:
        for part in environment.get(variable, "").split(os.pathsep):
            if len(part) > 1 and part.startswith("/"):
                yield Path(part)


def _host_keys() -> Iterator[Path]:
    try:
        yield from Path("/etc/ssh").glob("ssh_host_*_key")
    except OSError:
        return
