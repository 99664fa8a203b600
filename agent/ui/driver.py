"""The terminal, which may go away at any moment: a closed window, a broken ssh connection, a stopped job."""

from io import TextIOWrapper
from typing import IO, Any, cast

from textual.drivers.linux_driver import LinuxDriver


class UntilItIsGone:
    """Passes on to a terminal what it takes, and drops the rest.

    Textual writes in a thread behind a queue of limited length: if that thread died of a terminal that is
    gone, the program would wait for it for ever, and outlive its terminal.
    """

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, text: str) -> int:
        try:
            return self._file.write(text)
        except OSError:
            return len(text)

    def flush(self) -> None:
        try:
            self._file.flush()
        except OSError:
            return

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class LastingDriver(LinuxDriver):
    """As Textual's, for terminals that come and go."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if isinstance(self._file, TextIOWrapper):
            # Keys are read as UTF-8 whatever the locale says. Under another one each line and mark would be
            # written as its escaped number, six cells instead of one.
            self._file.reconfigure(encoding="utf-8", errors="replace")
        self._file = cast("IO[str]", UntilItIsGone(self._file))

    def _sigcont_application(self, *arguments: Any) -> None:
        import termios

        try:
            termios.tcgetattr(self.fileno)
        except termios.error:  # the system also sends it when it takes the terminal away
            return
        super()._sigcont_application(*arguments)
