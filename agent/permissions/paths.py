"""Where a path really leads: inside the workspace or not, to a secret, to a file that is never written."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HARMLESS_DEVICES = frozenset({"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"})

_SECRET_FOLDERS = frozenset({".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker"})
_PUBLIC_ENV = frozenset({".env.example", ".env.sample", ".env.template", ".env.dist"})
_SECRET_NAME = re.compile(
    r"\.env.*|.*\.(pem|key|p12|pfx|jks|keystore|kdbx|ppk)|id_[^.]*(\.(pub|old|bak))?|[._]netrc|\.git-credentials"
    r"|\.?credentials(\.(json|ya?ml|toml|ini|cfg|xml|csv|txt|db))?|\.pypirc|\.pgpass|\.htpasswd|\.boto"
)
_NEVER_WRITTEN = frozenset({".git", ".agent"})


@dataclass(frozen=True, slots=True)
class Place:
    """A path with what decides about it.

    `lexical` is absolute with `..` removed from the text, `real` follows symbolic links, as the system does.
    `protected` marks the agent's own settings and git's files, which tools never write.
    """

    text: str
    lexical: str
    real: str
    inside: bool
    secret: bool
    protected: bool
    is_root: bool = False
    is_device: bool = False


def locate(text: str, base: Path, workspace: Path, protected: Sequence[Path] = ()) -> Place:
    """Finds out where `text` leads when it is used in the folder `base`.

    Args:
        text: a path as a tool got it; a leading `~` is the home folder.
        base: the folder that a relative path starts from.
        workspace: the root of what may be touched without asking.
        protected: further folders and files that are never written.
    """
    if text in HARMLESS_DEVICES:
        return Place(text, text, text, inside=True, secret=False, protected=False, is_device=True)
    try:
        expanded = Path(text).expanduser() if text.startswith("~") else Path(text)
        joined = base / expanded
        lexical, real = os.path.normpath(joined), os.path.realpath(joined)
    except (OSError, RuntimeError, ValueError):  # no such person, or no possible path
        return Place(text, text, text, inside=False, secret=False, protected=False)
    root = os.path.realpath(workspace)
    roots = {root, os.path.normpath(workspace)}
    inside = is_within(real, root)
    if ".." in expanded.parts:
        inside = inside and any(is_within(lexical, each) for each in roots)
    parts = _parts_below(real, root) | _parts_below(lexical, os.path.normpath(workspace))
    guarded = [os.path.realpath(path) for path in protected] + [os.path.normpath(path) for path in protected]
    return Place(
        text=text,
        lexical=lexical,
        real=real,
        inside=inside,
        secret=any(map(is_secret_part, parts)),
        protected=bool(parts & _NEVER_WRITTEN)
        or any(is_within(path, guard) for path in (real, lexical) for guard in guarded),
        is_root=real == root or is_within(root, real),
    )


def is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def is_secret_part(name: str) -> bool:
    """Whether a file or folder of this name usually holds keys or passwords."""
    name = name.casefold()
    if name in _PUBLIC_ENV:
        return False
    return name in _SECRET_FOLDERS or _SECRET_NAME.fullmatch(name) is not None


def _parts_below(path: str, root: str) -> set[str]:
    """The names from `root` to `path`, in lower case, as some file systems do not tell case apart."""
    return {part.casefold() for part in os.path.relpath(path, root).split("/")}
