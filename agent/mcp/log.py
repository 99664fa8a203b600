"""What MCP servers say on their standard error, in one file each, of limited size."""

from pathlib import Path

from agent.core.private_folder import make_private_folder

LARGEST_BYTES = 1024 * 1024
"""A log that has grown to this size becomes `NAME.log.1`, and a new one begins."""


class ServerLog:
    """The log of one server; the folder is made with the first line. A full disk is nobody's problem here."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, content: bytes) -> None:
        """Appends `content`; of a great lot only the end is kept."""
        try:
            make_private_folder(self.path.parent)
            if self._size() + len(content) > LARGEST_BYTES and self._size():
                self.path.replace(self.path.with_name(self.path.name + ".1"))
            with self.path.open("ab") as file:
                file.write(content[-LARGEST_BYTES:])
        except OSError:
            return

    def last_lines(self, count: int) -> list[str]:
        """The last lines, decoded; none where there is no log."""
        try:
            with self.path.open("rb") as file:
                file.seek(max(0, self._size() - count * 400))
                content = file.read()
        except OSError:
            return []
        return content.decode("utf-8", "replace").splitlines()[-count:]

    def _size(self) -> int:
        try:
            return self.path.stat().st_size
        except OSError:
            return 0


def log_of(state: Path, name: str) -> ServerLog:
    """The log of the server `name` below the state folder."""
    return ServerLog(state / "mcp" / "logs" / f"{name}.log")
