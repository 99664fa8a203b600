"""What no model has had yet: the text in the input field, and what waits in the queue before it."""

from collections.abc import Callable, Sequence

from agent.ui.entry.draft import Draft, DraftFile


class Unsent:
    """Keeps in a file what is typed and what is queued, so that it is lost by no end of the program."""

    def __init__(
        self, file: DraftFile, typed: Callable[[], Draft], waiting: Callable[[], Sequence[str]]
    ) -> None:
        """`typed` is what the input field holds, `waiting` what was sent before there was a session."""
        self._file = file
        self._typed = typed
        self._waiting = waiting
        self._queued: tuple[str, ...] = ()
        self._is_closed = False

    def keep_queued(self, texts: Sequence[str]) -> None:
        """Takes note of all that waits in the queue of the session."""
        if not self._is_closed:
            self._queued = tuple(texts)

    def save(self) -> None:
        self._file.save(self._all())

    def close(self) -> None:
        """Saves; from now on the queue counts as it is: a session that is closed empties it unsent."""
        self._is_closed = True
        self.save()

    def remove(self) -> None:
        """What was typed is sent, and whatever is queued is kept again at its next change."""
        self._file.remove()

    def remove_if_empty(self) -> None:
        if not self._all().text:
            self._file.remove()

    def take_abandoned(self) -> Draft | None:
        """What another program left that ended without sending it, see `DraftFile`. Reads files."""
        return self._file.take_abandoned()

    def _all(self) -> Draft:
        draft = self._typed()
        before = "\n\n".join((*self._queued, *self._waiting()))
        return Draft("\n".join(filter(None, (before, draft.text))), draft.pastes)
