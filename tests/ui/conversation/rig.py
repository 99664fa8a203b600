"""An app with nothing but the view, and the sentences that tests feed it."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widgets import Input

from agent.core.events import Event
from agent.ui.conversation.markdown import MarkdownStream
from agent.ui.conversation.notes import Reply
from agent.ui.conversation.pieces import Piece
from agent.ui.conversation.view import ConversationView
from agent.ui.themes import OURS

Size = tuple[int, int]


class ViewApp(App[None]):
    CSS = "ConversationView { height: 1fr; }"

    def __init__(self, theme: str = "agent-dark") -> None:
        super().__init__()
        for known in OURS:
            self.register_theme(known)
        self.theme = theme
        self.copied: list[str] = []

    def compose(self) -> ComposeResult:
        yield ConversationView(clock=lambda: 100.0)
        yield Input()

    def on_conversation_view_copy_requested(self, message: ConversationView.CopyRequested) -> None:
        self.copied.append(message.text)


@asynccontextmanager
async def shown(
    events: Iterable[Event] = (), size: Size = (80, 24), theme: str = "agent-dark"
) -> AsyncIterator[tuple[ConversationView, Pilot[None]]]:
    """The view after `events`, in a terminal of `size`, with the focus on it."""
    app = ViewApp(theme)
    async with app.run_test(size=size) as pilot:
        view = app.query_one(ConversationView)
        view.focus()
        await pilot.pause()
        await feed(view, pilot, events)
        yield view, pilot


async def feed(view: ConversationView, pilot: Pilot[None], events: Iterable[Event]) -> None:
    for event in events:
        view.show(event)
    view.flush()
    await pilot.pause()


def screen_rows(view: ConversationView) -> list[str]:
    """What stands on the rows of the view, without spaces at the end."""
    return [view.render_line(y).text.rstrip() for y in range(view.size.height)]


class Sheet:
    """Pieces in a list, as the transcript puts them into the document."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []

    def put(self, piece: Piece) -> None:
        self.pieces.append(piece)

    def take_last(self, piece: Piece) -> None:
        assert self.pieces.pop() is piece

    def changed(self, piece: Piece) -> None:
        assert piece in self.pieces

    def rows(self, width: int = 80) -> list[str]:
        for piece in self.pieces:
            piece.refresh(width)
        return [line.text.rstrip() for piece in self.pieces for line in piece.lines]


def rows_of(markdown: str, width: int = 80) -> list[str]:
    """The rows of a whole text, without the two cells of margin."""
    rows: list[str] = []
    for block in Reply(markdown).unfold():
        block.refresh(width)
        rows.extend(line.text.rstrip()[2:] for line in block.lines)
    return rows[1:] if rows and not rows[0] else rows


def streamed(parts: Iterable[str], *, previews: bool) -> Sheet:
    sheet = Sheet()
    stream = MarkdownStream(sheet)
    for part in parts:
        stream.feed(part)
        if previews:
            stream.preview()
            sheet.rows()
    stream.finish()
    return sheet
