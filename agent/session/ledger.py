"""What the model has seen of the workspace, and what the session changed in it."""

import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from agent.core.errors import AgentError, UsageError
from agent.core.tool import FileVersion
from agent.session.held import drop_held
from agent.session.kept import KeptFiles
from agent.session.placing import put_back, remove_if_empty
from agent.session.states import ABSENT, ContentStore, FileState, digest_of, relative_key
from agent.session.store import moment_of


class SeenFiles:
    """The versions of files that one conversation has seen. Links are followed."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._seen: dict[Path, FileVersion] = {}

    def seen(self, path: Path) -> FileVersion | None:
        return self._seen.get(self.target(path))

    def look(self, path: Path) -> None:
        target = self.target(path)
        version = _version_of(target)
        if version is None:
            self._seen.pop(target, None)
        else:
            self._seen[target] = version

    def forget(self, path: Path) -> None:
        self._seen.pop(self.target(path), None)

    def is_stale(self, path: Path) -> bool:
        version = self.seen(path)
        if version is None:
            return False
        present = _version_of(self.target(path))
        # A new time with the same bytes (a checkout, a touch) is no reason to read again, and an equal
        # time proves nothing on file systems with coarse clocks: content decides.
        return present is None or present.sha256 != version.sha256

    def target(self, path: Path) -> Path:
        """The file that `path` leads to."""
        return Path(os.path.realpath(self._workspace / path))


class SessionLedger:
    """The `FileLedger` of one session. Originals go to `before/` in `session_folder`, see `kept`.

    A tool announces a change with `before_change(path)`, makes it, and calls `record(path)`. That
    `record` also tells undo what the session left behind; without it a later `before_change` of the same
    file takes what it finds for the announced change. `record` without an announcement (a read) never
    claims a change for the session.

    `report` gets one line when the bookkeeping after a change fails; the change itself stands. `clock` is
    in seconds since 1970.
    """

    def __init__(
        self,
        workspace: Path,
        session_folder: Path,
        *,
        report: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.workspace = workspace.resolve()
        self._root = os.fspath(self.workspace)
        self._session_folder = session_folder
        self._kept = KeptFiles(session_folder, self.workspace, lambda: moment_of(session_folder, clock()))
        self._files = SeenFiles(self.workspace)
        self._announced: set[str] = set()
        self._report = report
        self._closing: list[Callable[[], None]] = []

    def seen(self, path: Path) -> FileVersion | None:
        """The version of `path` that the model has seen last, if any. Links are followed."""
        return self._files.seen(path)

    def record(self, path: Path) -> None:
        """Notes that the model knows the present content of `path`, and that an announced change is made."""
        self._files.look(path)
        self.settle(path)

    def settle(self, path: Path) -> None:
        """Notes that an announced change of `path` is made, without the model having seen what it is now."""
        for key in self._keys(path):
            if key in self._announced:
                self._settle(key)

    def apart(self) -> "LedgerApart":
        """A ledger for another conversation in the same session: what it sees this one has not seen."""
        return LedgerApart(self)

    def is_stale(self, path: Path) -> bool:
        """Whether the content of `path` differs from what was recorded; False if nothing was."""
        return self._files.is_stale(path)

    def before_change(self, path: Path) -> None:
        """Keeps the content (or absence) and mode of `path` once, and announces a change.

        A link is kept as a link, and the file that it leads to is kept too.

        Raises:
            UsageError: the path or the file that it leads to is outside of the workspace or not a file.
            AgentError: the original could not be kept. The caller must not make the change.
        """
        for key in self._keys(path, strict=True):
            self._keep(key)
            self._announced.add(key)

    def changed_files(self) -> tuple[Path, ...]:
        """Absolute paths of the files that now differ from their original, in order of first change."""
        return tuple(
            self.workspace / key
            for key, file in self._kept.files.items()
            if self._present(key) != file.original
        )

    def foreign_files(self) -> tuple[Path, ...]:
        """Files that somebody else changed too while the session was changing them."""
        return tuple(
            self.workspace / key
            for key, file in self._kept.files.items()
            if file.foreign or (file.result is not None and self._present(key) != file.result)
        )

    def roll_back(self) -> tuple[Path, ...]:
        """Puts back what the session changed so far, so that it can start over; returns these paths.

        Files that somebody else changed too stay as they are. The model has seen none of the others then.

        Raises:
            AgentError: the disk failed. Files before the one that is named are put back.
        """
        restored: list[Path] = []
        # First what is to be gone: a file can be where a folder has to be again, and the other way round.
        in_order = sorted(self._kept.files.items(), key=lambda item: item[1].original != ABSENT)
        for key, file in in_order:
            path = self.workspace / key
            present = self._present(key)
            if present == file.original or file.foreign or present != file.result:
                continue
            try:
                if present.kind == "file":
                    self._kept.contents.keep(path)  # nothing is lost, not even a failed attempt
                path.parent.mkdir(parents=True, exist_ok=True)
                put_back(file.original, path, self._kept.contents)
            except OSError as error:
                raise AgentError(f"cannot put back {path}: {error.strerror or error}") from error
            for folder in reversed(file.made_folders):
                remove_if_empty(self.workspace / folder)
            self._settle(key)
            self._files.forget(path)
            restored.append(path)
        return tuple(restored)

    @contextmanager
    def own_changes(self, *, undoing: bool = False) -> Iterator[None]:
        """Counts what happens to already kept files inside the block as the session's own.

        `undoing` says that a person takes changes back or brings them back, which is no change of a turn.
        For running commands: a formatter that the model starts is not somebody else. Files that somebody
        else had changed before the block stay somebody else's.
        """
        ours = [key for key, file in self._kept.files.items() if self._present(key) == file.last_known]
        try:
            yield
        finally:
            for key in ours:
                if self._present(key) != self._kept.files[key].last_known:
                    self._settle(key, undoing=undoing)

    def adopt(self, key: str, original: FileState, made: Sequence[str], source: ContentStore) -> None:
        """Counts a change that a command has made as the session's. For what it was, see `KeptFiles.adopt`.

        A file that is kept already is left to `own_changes`; what somebody else had made of it is kept too.

        Raises:
            AgentError: the original could not be kept.
        """
        known = self._kept.files.get(key)
        if known is None:
            self._kept.adopt(key, original, made, source)
            self._settle(key)
        elif known.result not in (None, original, self._present(key)) and not known.foreign:
            self._kept.adopt_foreign(key, original, source)

    def begin_turn(self, number: int) -> None:
        """Keeps what the changed files are now, so that a person can go back to before turn `number`.

        Raises:
            AgentError: it could not be kept.
        """
        self._kept.begin_turn(number)

    def spare(self, key: str, state: FileState, source: ContentStore) -> Path | None:
        """Keeps what a file was that somebody changed, no matter who; where it is, None if the ledger has it.

        Undo leaves such a file alone.

        Raises:
            OSError: it could not be kept.
        """
        if key in self._kept.files:
            return None
        self._kept.contents.take_over(state.content, source)
        return self._kept.contents.path_of(state.content)

    def when_closing(self, call: Callable[[], None]) -> None:
        """Has `call` done before the copies for commands go."""
        self._closing.append(call)

    def close(self) -> None:
        """Closes the index file, and lets go of copies that no command needs. It can still be read."""
        while self._closing:
            self._closing.pop()()
        self._kept.close()
        drop_held(self._session_folder)

    def _keep(self, key: str) -> None:
        known = self._kept.files.get(key)
        if known is None:
            self._kept.keep(key)
            return
        present = self._present(key)
        if present == known.last_known:
            return
        if key in self._announced:
            self._kept.set_result(key, present)
        else:
            self._kept.set_foreign(key)

    def _settle(self, key: str, *, undoing: bool = False) -> None:
        self._announced.discard(key)
        try:
            self._kept.set_result(key, self._present(key), undoing=undoing)
        except AgentError as error:
            if self._report is not None:
                self._report(f"undo will not cover {key}: {error.message}")

    def _present(self, key: str) -> FileState:
        try:
            return self._kept.present(key)
        except OSError:
            return FileState("other")

    def _keys(self, path: Path, *, strict: bool = False) -> list[str]:
        """The names of `path` and of the file that it leads to. Raises UsageError if `strict`."""
        keys: list[str] = []
        for candidate in self._candidates(path):
            try:
                key = relative_key(self.workspace, candidate)
            except UsageError:
                if strict:
                    raise
                continue
            if key not in keys:
                keys.append(key)
        return keys

    def _candidates(self, path: Path) -> tuple[Path, ...]:
        """`path`, and where it leads if it is a link itself; links on the way are the key's business."""
        name = os.fspath(path)
        try:
            mode = os.lstat(name if name.startswith("/") else f"{self._root}/{name}").st_mode
        except (OSError, ValueError):
            return (path,)
        return (path, self._files.target(path)) if stat.S_ISLNK(mode) else (path,)


class LedgerApart:
    """The `FileLedger` of a sub-agent. Its changes are the session's, its knowledge is its own."""

    def __init__(self, ledger: SessionLedger) -> None:
        self._ledger = ledger
        self._files = SeenFiles(ledger.workspace)

    def seen(self, path: Path) -> FileVersion | None:
        return self._files.seen(path)

    def record(self, path: Path) -> None:
        self._files.look(path)
        self._ledger.settle(path)

    def is_stale(self, path: Path) -> bool:
        return self._files.is_stale(path)

    def before_change(self, path: Path) -> None:
        self._ledger.before_change(path)


def _version_of(path: Path) -> FileVersion | None:
    try:
        if not path.is_file():
            return None
        digest, status = digest_of(path), path.stat()
    except OSError:
        return None
    return FileVersion(status.st_size, status.st_mtime_ns, digest)
