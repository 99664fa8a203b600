"""The input field: several lines, history, completion, folded pastes."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea

from agent.ui.entry.completion import Completable, completable, mention
from agent.ui.entry.draft import Draft
from agent.ui.entry.dropped import dropped_file
from agent.ui.entry.history import InputHistory
from agent.ui.entry.pastes import Pastes, normalised
from agent.ui.keys import actions_by_key
from agent.ui.widgets.menu import Menu

When = Literal["now", "later"]


class Prompt(TextArea):
    """Knows what is typed and what that means; whoever listens to its messages acts on it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", "Send, or steer the turn", id="send"),
        Binding("alt+enter", "send_later", "Queue for after this turn", id="send-later"),
        Binding("shift+enter,ctrl+j,ctrl+enter", "newline", "New line", id="newline"),
        Binding("up", "up", "Older entry", id="older", show=False),
        Binding("down", "down", "Newer entry", id="newer", show=False),
        Binding("tab", "complete", "Complete; to the conversation", id="complete", show=False),
        Binding("escape", "escape", "Interrupt, or close the menu", id="interrupt"),
        Binding("ctrl+d", "delete_or_quit", "Quit when the input is empty", id="end", show=False),
        Binding("ctrl+r", "search_history", "Search what was sent", id="search-history"),
        Binding("ctrl+g", "edit_outside", "Edit in $EDITOR", id="editor"),
        Binding("pageup", "app.scroll_conversation(-1)", "Scroll the conversation up", id="scroll-up"),
        Binding("pagedown", "app.scroll_conversation(1)", "Scroll it down", id="scroll-down"),
        Binding("ctrl+v,super+v", "paste_any", "Paste, also an image", id="paste", show=False),
        Binding("backspace,ctrl+h", "delete_left", "Delete", show=False),
        Binding("ctrl+c,super+c", "copy_or_stop", "Copy the selection", show=False),
    ]

    @dataclass
    class Sent(Message):
        """`text` has its pastes back in; `typed` is what was seen in the field."""

        text: str
        typed: str
        when: When

    @dataclass
    class Wanted(Message):
        """A key whose meaning depends on more than the field."""

        what: Literal["interrupt", "quit", "history", "editor", "beside", "stop", "paste", "nothing"]

    @dataclass
    class Completing(Message):
        """What can be completed at the cursor changed."""

        target: Completable | None

    def __init__(self, history: InputHistory, menu: Menu, keys: Mapping[str, str]) -> None:
        super().__init__(
            id="prompt",
            compact=True,
            highlight_cursor_line=False,
            placeholder="Ask for something",
        )
        self.cursor_blink = False  # a timer that repaints all day, over ssh too
        self.past = history
        self.pastes = Pastes()
        self.menu = menu
        self.workspace: Path | None = None
        # Enter with any modifier arrives as this key from terminals that use xterm's modifyOtherKeys.
        self._actions = {"\r": "newline"} | actions_by_key([*TextArea.BINDINGS, *self.BINDINGS], keys)
        self._target: Completable | None = None
        self._is_showing_history = False

    @property
    def before_cursor(self) -> str:
        return self.get_text_range((0, 0), self.cursor_location)

    @property
    def is_menu_open(self) -> bool:
        """Whether the menu fits what is in the field now; one for an earlier text does not count."""
        return bool(self.menu.display) and self.menu.target == completable(self.before_cursor)

    @property
    def _is_whole_mention(self) -> bool:
        """Whether the file that the menu offers is typed to its end already: Enter then means the message."""
        choice, target = self.menu.choice, self.menu.target
        if choice is None or target is None or target.kind != "file":
            return False
        return self.before_cursor.endswith(choice.value.rstrip()) and choice.label == target.query

    def draft(self) -> Draft:
        return Draft(self.text, dict(self.pastes.texts))

    def show_draft(self, draft: Draft) -> None:
        """Puts `draft` in front of whatever was typed already."""
        self.pastes.texts.update(draft.pastes)
        self.show_text(f"{draft.text}\n{self.text}" if self.text else draft.text)

    def show_text(self, text: str) -> None:
        """Replaces what is in the field, as an edit that can be undone; the cursor goes to the end."""
        self.replace(text, (0, 0), self.document.end)
        self.move_cursor(self.document.end)

    def put_before(self, text: str) -> None:
        """Gives text back into the field, before what is being typed now."""
        self.show_text(f"{text}\n{self.text}" if self.text.strip() else text)

    def _accept(self, *, is_final: bool) -> None:
        choice, target = self.menu.choice, self.menu.target
        if choice is None or target is None:
            return
        row, column = self.cursor_location
        result = self.replace(choice.value, (row, max(0, column - target.length)), (row, column))
        self.move_cursor(result.end_location)
        self.menu.close()
        if is_final and target.kind == "command" and not choice.value.endswith(" "):
            self.send("now")

    async def _on_key(self, event: events.Key) -> None:
        # Bindings would be acted on by the application, after keys that came later have been typed. Here
        # every key is done before the next one is looked at, however fast they come.
        action = self._actions.get(event.key)
        if action is not None:
            event.stop()
            event.prevent_default()
            await self.run_action(action)
        elif event.is_printable:
            self._leave_past()

    def _leave_past(self) -> None:
        self.past.leave()
        self._is_showing_history = False

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self.take_paste(event.text)

    def take_paste(self, text: str) -> None:
        """Inserts what was pasted: the path of a dragged file as a mention, a long text as a placeholder."""
        if not text:  # some terminals send this for an image, which they cannot paste themselves
            self.action_paste_any()
            return
        if self.workspace is not None and not self.text.startswith(("!", "/")):
            text = dropped_file(text, self.workspace) or text
        self.insert_at_cursor(self.pastes.fold(normalised(text)))

    def action_paste_any(self) -> None:
        self.post_message(self.Wanted("paste"))

    def insert_image(self, path: Path) -> None:
        self.insert_at_cursor(f"{self.pastes.stand_for_image(mention(path.as_posix()))} ")

    def insert_at_cursor(self, text: str) -> None:
        start, end = sorted((self.selection.start, self.selection.end))
        result = self.replace(text, start, end)
        self.move_cursor(result.end_location)

    def action_send(self) -> None:
        if self.is_menu_open and not self._is_whole_mention:
            self._accept(is_final=True)
            return
        row, column = self.cursor_location
        line = self.document.get_line(row)
        if line[:column].endswith("\\") and not line[:column].endswith("\\\\"):
            self.replace("\n", (row, column - 1), (row, column))
            return
        if not self.text.strip():
            self.post_message(self.Wanted("nothing"))
        self.send("now")

    def action_send_later(self) -> None:
        self.send("later")

    def send(self, when: When) -> None:
        """Hands the text over and empties the field; nothing happens when there is none."""
        typed = self.text
        if not typed.strip():
            return
        text = self.pastes.expand(typed)
        self.past.add(text)
        self.empty()
        self.post_message(self.Sent(text, typed, when))

    def empty(self) -> None:
        self.replace("", (0, 0), self.document.end)
        self.pastes.clear()

    def action_newline(self) -> None:
        self.insert_at_cursor("\n")

    def action_up(self) -> None:
        if self.is_menu_open:
            self.menu.move(-1)
        elif self.cursor_at_first_line:
            self._show_past(self.past.older(self.text))
        else:
            self.action_cursor_up()

    def action_down(self) -> None:
        if self.is_menu_open:
            self.menu.move(1)
        elif self.cursor_at_last_line:
            self._show_past(self.past.newer())
        else:
            self.action_cursor_down()

    def _show_past(self, text: str | None) -> None:
        if text is not None:
            self._is_showing_history = True
            self.show_text(text)

    def action_complete(self) -> None:
        if self.is_menu_open:
            self._accept(is_final=False)
        elif (target := completable(self.before_cursor)) is not None:
            # Whoever types fast is ahead of the menu.
            self.menu.when_open(target, self._accept_current)
            self.post_message(self.Completing(target))
        else:
            self.post_message(self.Wanted("beside"))

    def _accept_current(self) -> None:
        if self.is_menu_open:
            self._accept(is_final=False)

    def action_escape(self) -> None:
        if self.is_menu_open:
            self.menu.close()
        else:
            self.post_message(self.Wanted("interrupt"))

    def action_delete_or_quit(self) -> None:
        if self.text:
            self.action_delete_right()
        else:
            self.post_message(self.Wanted("quit"))

    def action_delete_left(self) -> None:
        row, column = self.cursor_location
        placeholder = self.pastes.ending_at(self.document.get_line(row)[:column])
        if placeholder and self.selection.is_empty:
            self.replace("", (row, column - len(placeholder)), (row, column))
        else:
            super().action_delete_left()

    def action_copy_or_stop(self) -> None:
        if self.selected_text:
            self.action_copy()
        else:
            self.post_message(self.Wanted("stop"))

    def action_search_history(self) -> None:
        self.post_message(self.Wanted("history"))

    def action_edit_outside(self) -> None:
        self.post_message(self.Wanted("editor"))

    def on_text_area_changed(self) -> None:
        self.set_class(self.text.startswith("!"), "-shell")
        self._look_for_completion()

    def on_text_area_selection_changed(self) -> None:
        self._look_for_completion()

    def _look_for_completion(self) -> None:
        target = None if self._is_showing_history else completable(self.before_cursor)
        if target != self._target:
            self._target = target
            self.post_message(self.Completing(target))
