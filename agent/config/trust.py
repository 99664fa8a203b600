"""Which project folders a person trusts, and in which state of their configuration file.

The record is one JSON file in the state folder: resolved project folder -> sha256 of the
configuration that was shown when the person agreed. A file that changed afterwards is not trusted.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agent.config.files import write_atomically
from agent.core.errors import UsageError
from agent.resources import state_folder

FILE_NAME = "trusted.json"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class TrustStore:
    """The record in `path`; nothing is kept in memory, so that two terminals see each other's answers."""

    path: Path

    @classmethod
    def of(cls, environment: Mapping[str, str] | None = None) -> "TrustStore":
        """The store of the person whose environment this is."""
        return cls(state_folder(environment) / FILE_NAME)

    def trusts(self, folder: Path, content: bytes) -> bool:
        """Whether `folder` is trusted with exactly this `content` of its configuration file.

        Raises:
            UsageError: the record is there and cannot be understood.
        """
        return self.entries().get(_name(folder)) == fingerprint(content)

    def trust(self, folder: Path, content: bytes) -> None:
        """Trusts `folder` as long as its configuration file has this `content`."""
        self._write({**self.entries(), _name(folder): fingerprint(content)})

    def revoke(self, folder: Path) -> bool:
        """Forgets `folder`. Returns whether it was on record."""
        entries = self.entries()
        if _name(folder) not in entries:
            return False
        del entries[_name(folder)]
        self._write(entries)
        return True

    def entries(self) -> dict[str, str]:
        """Folder -> sha256, in the order in which they were trusted.

        Raises:
            UsageError: the record is there and cannot be understood.
        """
        try:
            record = json.loads(self.path.read_bytes().decode("utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except OSError as error:
            raise UsageError(f"{self.path} cannot be read: {error.strerror}") from error
        except (ValueError, RecursionError):
            record = None
        folders = record.get("folders") if isinstance(record, dict) else None
        if not isinstance(folders, dict) or not all(isinstance(value, str) for value in folders.values()):
            raise UsageError(
                f"{self.path} is damaged, so it is unknown which folders are trusted",
                "move that file away, then trust the folders again with `agent trust`",
            )
        return folders

    def _write(self, entries: Mapping[str, str]) -> None:
        record = {"version": FORMAT_VERSION, "folders": entries}
        write_atomically(self.path, json.dumps(record, indent=2) + "\n")


def fingerprint(content: bytes) -> str:
    """The sha256 of a configuration file, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def _name(folder: Path) -> str:
    return str(folder.resolve())
