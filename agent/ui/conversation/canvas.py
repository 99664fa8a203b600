"""The surface that a conversation is laid out and drawn on.

One widget draws all rows itself (Textual's line API) instead of mounting a widget for each block. A stream
of Markdown with code at 2,000 tok/s costs the whole program a third of a core, reading it from the network
and typing included. A bare app with Textual's own `Markdown` and its `MarkdownStream` is at its end there and
shows a key after five seconds (`benchmarks/ui_streaming.py --rival`): a widget for each paragraph takes part
in every layout.
Here one widget is mounted however long the session is, and a row is laid out once and only copied afterwards.

What happens between an event and the screen:
`show` only collects; a timer hands everything that came to the `Transcript` (events to blocks), asks it what
changed, lets the `Document` lay out what is in view, and repaints the rows from the first changed one.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import Reactive
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar
from textual.strip import Strip
from textual.timer import Timer

from agent.core.events import Event
from agent.ui.conversation import card
from agent.ui.conversation.chooser import Chooser
from agent.ui.conversation.document import Document
from agent.ui.conversation.look import look_of
from agent.ui.conversation.pace import Pace
from agent.ui.conversation.painter import Painter
from agent.ui.conversation.scroll_bar import SteadyScrollBar
from agent.ui.conversation.transcript import Transcript, merged


class ConversationCanvas(ScrollView):
    """Shows events as they come, follows the end unless the person scrolled up."""

    @dataclass
    class FollowChanged(Message, namespace="conversation_view"):
        """Whether the view follows the end, for a hint such as "3 screens below"."""

        follows: bool

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, **names: Any) -> None:
        """`clock` gives seconds that only go forward; `names` are Textual's `id`, `name` and `classes`."""
        super().__init__(**names)
        self._clock = clock
        self._document = Document()
        self._transcript = Transcript(self._document, self._clock)
        self._inbox: list[Event] = []
        self._flush_timer: asyncio.TimerHandle | None = None
        self._pace = Pace()
        self._spinner: Timer | None = None
        self._follows = True
        self._settling = False
        self._chooser = Chooser(self._document)
        self._painter: Painter | None = None

    # What the shell calls

    @property
    def follows(self) -> bool:
        """Whether new text keeps the end in view."""
        return self._follows

    @property
    def block_count(self) -> int:
        return len(self._document)

    @property
    def rendered_block_count(self) -> int:
        """Blocks that are laid out; bounded, whatever the length of the session."""
        return self._document.rendered_blocks

    def show(self, event: Event) -> None:
        """Takes one event; it is on the screen a frame later. Cheap enough for every token."""
        self._inbox.append(event)
        if self._flush_timer is None and self.is_attached:
            self._schedule_flush()

    def add_user(self, text: str) -> None:
        """Shows what the person just sent, at once, and goes to the end."""
        self._take_inbox()
        self._transcript.add_user(text)
        self._follow(True)
        self._settle()

    def clear(self) -> None:
        """An empty conversation; what was to be shown is dropped."""
        self._inbox.clear()
        opens = self._transcript.opens_reasoning
        self._document = Document(self._document.width)
        self._document.note_all_changed()
        self._transcript = Transcript(self._document, self._clock)
        self._transcript.opens_reasoning = opens
        self._chooser = Chooser(self._document)
        self._forget_look()
        self._follow(True)
        self._settle()

    def load_history(self, events: Sequence[Event]) -> None:
        """Appends events of an earlier time; nothing of it runs. Only what is in view is laid out."""
        self._take_inbox()
        self._transcript.load(events)
        self._document.note_all_changed()
        self._follow(True)
        self._settle()

    def toggle_reasoning(self) -> bool:
        """Opens or closes all thoughts, present and future; returns whether they are open now."""
        opens = not self._transcript.opens_reasoning
        for block in self._transcript.set_reasoning(is_open=opens):
            self._document.refresh(block)
        self._settle()
        return opens

    def copy_last(self) -> str:
        """The model's last words as it wrote them, empty if there are none yet."""
        self._take_inbox()
        return self._transcript.last_reply

    def plain_text(self) -> str:
        """The whole conversation as it looks, every row of it. Takes long for a long session."""
        self._take_inbox()
        self._settle()
        return self._document.plain_text()

    def flush(self) -> None:
        """Shows everything that came, without waiting for the next frame."""
        started = time.monotonic()
        if self._flush_timer is not None:
            self._flush_timer.cancel()
            self._flush_timer = None
        self._take_inbox()
        self._settle()
        self._pace.note(started, time.monotonic())
        if self._spinner is not None and self._transcript.running:
            self._spinner.resume()

    # From events to rows

    def _schedule_flush(self) -> None:
        pause = self._pace.pause_from(time.monotonic())
        # Not a timer of Textual's: it would make a task, and look up what the callback takes, for each frame.
        self._flush_timer = asyncio.get_running_loop().call_later(pause, self._ask_for_flush)

    def _ask_for_flush(self) -> None:
        self.post_message(events.Callback(self.flush))

    def _take_inbox(self) -> None:
        inbox, self._inbox = self._inbox, []
        for event in merged(inbox):
            self._transcript.apply(event)

    def _settle(self) -> None:
        """Lays out what is in view, moves the view where it belongs and repaints what changed."""
        document = self._document
        for block in self._transcript.take_dirty():
            document.refresh(block)
        if not self.size.width:
            return
        self._settling = True
        before = self.scroll_offset.y
        self._lay_out_view()
        changed = document.take_changed()
        self._settling = False
        if self.scroll_offset.y != before:
            self.refresh()
        elif changed is not None:
            top = max(changed - self.scroll_offset.y, 0)
            if top < self.size.height:
                self.refresh(Region(0, top, self.size.width, self.size.height - top))

    def _lay_out_view(self) -> None:
        document, rows = self._document, self._visible_rows
        for _ in range(12):  # laying out changes heights, and with them what is in view
            top = (
                max(document.height - rows, 0)
                if self._follows
                else min(round(self.scroll_y), max(document.height - rows, 0))
            )
            height = document.height
            grown = document.prepare(top, top + rows)
            if not self._follows and grown:
                top += grown
            self._set_height()
            self._place_at(top)
            if document.height == height and not grown:
                break

    @property
    def _visible_rows(self) -> int:
        return max(self.scrollable_content_region.height, 1)

    def _set_height(self) -> None:
        size = Size(self._document.width, self._document.height)
        if size != self.virtual_size:
            # Assigning would lay out the whole screen for every new row. Only the scroll bar has to know.
            self.set_reactive(cast("Reactive[Size]", ScrollView.virtual_size), size)
            self.vertical_scrollbar.window_virtual_size = size.height

    def _place_at(self, top: int) -> None:
        """Moves the view without taking it for a move of the person's."""
        settling, self._settling = self._settling, True
        self.scroll_target_y = self.scroll_y = top
        self._settling = settling

    def _go_to(self, row: int) -> None:
        """Moves the view as if the person had scrolled there."""
        self.scroll_target_y = self.scroll_y = min(max(row, 0), self.max_scroll_y)

    def on_mount(self) -> None:
        self._spinner = self.set_interval(card.FRAME_SECONDS, self._turn_spinner, pause=True)
        self.app.theme_changed_signal.subscribe(self, lambda _: self._forget_look())
        if self._inbox:
            self._schedule_flush()

    def on_unmount(self) -> None:
        if self._flush_timer is not None:
            self._flush_timer.cancel()

    def on_resize(self, event: events.Resize) -> None:
        width = self.scrollable_content_region.width
        if width <= 0:
            return
        if width != self._document.width:
            index = self._document.at(round(self.scroll_y))
            inside = round(self.scroll_y) - self._document.top_of(index) if index >= 0 else 0
            self._document.resize(width)
            if not self._follows and index >= 0:
                self._document.prepare(self._document.top_of(index), self._document.top_of(index) + 1)
                self._set_height()
                self._place_at(self._document.top_of(index) + inside)
        self._settle()
        self.refresh()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self._settling or round(old_value) == round(new_value):
            return
        self._follow(round(new_value) >= self.max_scroll_y)
        self._settle()

    def _follow(self, follows: bool) -> None:
        if follows != self._follows:
            self._follows = follows
            self.post_message(self.FollowChanged(follows))

    def _turn_spinner(self) -> None:
        cards = self._transcript.tick()
        if not cards and self._spinner is not None:
            self._spinner.pause()
        for running in cards:
            if running.is_rendered:
                self._document.refresh(running)
        self._settle()

    # Drawing

    @property
    def vertical_scrollbar(self) -> ScrollBar:
        """Made here because Textual has no other way to choose the class of a scroll bar."""
        if self._vertical_scrollbar is None:
            self._vertical_scrollbar = SteadyScrollBar(thickness=self.scrollbar_size_vertical)
            self._vertical_scrollbar.display = False
            self.app._start_widget(self, self._vertical_scrollbar)
        return self._vertical_scrollbar

    def render_lines(self, crop: Region) -> list[Strip]:
        """As `draw_lines`, and each sign knows its place in the conversation, for a selection by mouse."""
        first, end = self.scroll_offset.y + crop.y, self._document.height
        strips = self.draw_lines(Region(0, crop.y, self.region.width, crop.height))
        placed = [
            strip.apply_offsets(0, row) if row < end else strip for row, strip in enumerate(strips, first)
        ]
        return self._cropped(placed, crop)

    def draw_lines(self, crop: Region) -> list[Strip]:
        """The rows of `crop`. Textual's own way adds borders, padding and tints; there are none here."""
        painter, selection = self._present_painter(), self.text_selection
        first, width = self.scroll_offset.y + crop.y, self._document.width
        strips: list[Strip] = []
        for row, line in enumerate(self._document.rows(first, crop.height), first):
            is_chosen = self._chooser.has_row(row)
            if line is None:
                strips.append(painter.blank(self.size.width))
            elif is_chosen or selection is not None:
                strips.append(painter.marked(line, row, width, selection, is_chosen=is_chosen))
            else:
                strips.append(painter.strip(line, width))
        return self._cropped(strips, crop)

    def _cropped(self, strips: list[Strip], crop: Region) -> list[Strip]:
        if crop.column_span == (0, self.region.width):
            return strips
        return [strip.crop(*crop.column_span) for strip in strips]

    def render_line(self, y: int) -> Strip:
        return self.render_lines(Region(0, y, self.region.width, 1))[0]

    def _present_painter(self) -> Painter:
        if self._painter is None:
            theme = self.app.current_theme
            look = look_of(self.app.theme_variables, dark=theme.dark, ansi=theme.ansi)
            # Only what is behind the text: its own colour is the same there, which would hide it.
            selected = self.screen.get_component_rich_style("screen--selection").bgcolor
            look.names["selected"] = Style(bgcolor=selected) if selected else Style(reverse=True)
            self._painter = Painter(look, self.get_line_filters(), self.background_colors[1])
        return self._painter

    def _forget_look(self) -> None:
        if self._painter is not None:
            self._painter.forget()
            self._painter = None
        self.refresh()
