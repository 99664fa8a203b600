"""Tokens of servers that a person has signed in to: one file each, for its owner only (0600).

A file belongs to the name of a server and its address, so that no other address ever gets its token.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.core.errors import UsageError
from agent.core.whole_file import write_whole
from agent.mcp.config import ServerSpec

_LARGEST_BYTES = 256 * 1024
_FILE_NAME = re.compile(r"(?P<name>.+)-[0-9a-f]{16}\.json")


@dataclass(frozen=True, slots=True)
class TokenFile:
    """What is kept of one sign-in, as JSON; nothing is held in memory."""

    path: Path

    @property
    def exists(self) -> bool:
        return "tokens" in self.read()

    def read(self) -> dict[str, Any]:
        """The record; empty where there is none, or where it is damaged."""
        try:
            if self.path.stat().st_size > _LARGEST_BYTES:
                return {}
            record = json.loads(self.path.read_bytes().decode("utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        return record if isinstance(record, dict) else {}

    def write(self, record: dict[str, Any]) -> None:
        """Replaces the record.

        Raises:
            UsageError: it cannot be written.
        """
        try:
            write_whole(self.path, json.dumps(record))
        except OSError as error:
            reason = error.strerror or error
            raise UsageError(f"the sign-in cannot be kept in {self.path.parent}: {reason}") from error

    def remove(self) -> bool:
        """Forgets the sign-in. Returns whether there was one."""
        try:
            self.path.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise UsageError(f"{self.path} cannot be deleted: {error.strerror}") from error
        return True


def token_file(folder: Path, spec: ServerSpec) -> TokenFile:
    """The file of a server, with variables in its address replaced."""
    digest = hashlib.sha256(spec.url.encode("utf-8", "replace")).hexdigest()[:16]
    return TokenFile(folder / f"{spec.name}-{digest}.json")


def token_files(folder: Path, name: str) -> Iterator[TokenFile]:
    """All sign-ins of that name, at whatever address."""
    with suppress(OSError):
        for path in sorted(folder.iterdir()):
            match = _FILE_NAME.fullmatch(path.name)
            if match is not None and match["name"] == name:
                yield TokenFile(path)
