"""Commands on disks that are full or cannot be written to, for root and for anybody else.

A real file system without a free byte where one may be mounted: by root, or by a user in a namespace of
their own. Elsewhere no file may grow, which looks much the same to a program.
"""

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from tests.e2e.conftest import AGENT, Place

_SMALL = 'export PYTHONDONTWRITEBYTECODE=1; ulimit -f 4; exec "$@"'
SMALL_FILES = ("bash", "-c", _SMALL, "bash")
"""No file may become larger than 4 KiB, as on a disk that is full. Python would leave half its bytecode."""
FULL = ("no space left on device", "file too large")
"""What the system says of it, in small letters."""


@lru_cache(maxsize=1)
def mounting() -> tuple[str, ...]:
    """What a command begins with that may mount; empty where nobody lets it."""
    words = (
        ("unshare", "--mount") if os.geteuid() == 0 else ("unshare", "--user", "--map-root-user", "--mount")
    )
    tried = [*words, "sh", "-c", "mount -t tmpfs -o size=16k tmpfs /mnt"]
    works = shutil.which("unshare") and not subprocess.run(tried, capture_output=True, check=False).returncode
    return tuple(words) if works else ()


def full(place: Place, folder: Path, program: Sequence[str] = AGENT) -> tuple[str, ...]:
    """The program on a disk with no byte left in `folder`. See `afterwards`.

    What is in the folder is on the small disk too, and comes back into a copy of it.
    """
    if not mounting():
        return (*SMALL_FILES, *program)
    name, copy = shlex.quote(str(folder)), shlex.quote(f"{folder}.copy")
    script = (
        f"cp -a {name} {copy} && size=$(du -sk {copy} | cut -f1) && "
        f"mount -t tmpfs -o size=$((size + 64))k tmpfs {name} && "
        f"cp -a {copy}/. {name} && (cat /dev/zero > {name}/filler) 2> /dev/null; "
        f'cd {shlex.quote(str(place.workspace))} && "$@"; code=$?; rm {name}/filler; '
        f"rm -r {copy}; cp -a {name} {copy}; exit $code"
    )
    return (*mounting(), "sh", "-c", script, "sh", *program)


def afterwards(folder: Path) -> Path:
    """Where what was in `folder` can be looked at when the command has ended."""
    copy = folder.with_name(f"{folder.name}.copy")
    return copy if copy.exists() else folder


def frozen(place: Place, folder: Path, program: Sequence[str] = AGENT) -> tuple[str, ...]:
    """The program with a folder that cannot be written to; `thawed` ends it."""
    name, begin = shlex.quote(str(folder)), f'cd {shlex.quote(str(place.workspace))} && exec "$@"'
    if os.geteuid() == 0:  # whom permissions do not stop
        script = f"mount --bind -o ro {name} {name} && {begin}"
        return ("unshare", "--mount", "sh", "-c", script, "sh", *program)
    # Not the files: a changed mode would be a change of somebody else's.
    return ("sh", "-c", f"find {name} -type d -exec chmod a-w {{}} + && {begin}", "sh", *program)


def thawed(folder: Path) -> Path:
    """The folder, which may be written to again."""
    subprocess.run(["chmod", "-R", "u+w", folder], check=True)
    return folder
