"""Keys of the view while it has the focus. Their ids are for a person's own key map."""

from textual.binding import Binding

KEYS: tuple[Binding, ...] = (
    Binding("up,k", "line(-1)", "Up", show=False, id="conversation.up"),
    Binding("down,j", "line(1)", "Down", show=False, id="conversation.down"),
    Binding("pageup,ctrl+b", "page(-1)", "Page up", show=False, id="conversation.page-up"),
    Binding("pagedown,ctrl+f", "page(1)", "Page down", show=False, id="conversation.page-down"),
    Binding("home,g", "begin", "First block", show=False, id="conversation.begin"),
    Binding("end,G", "jump_to_end", "Follow the end", id="conversation.end"),
    Binding("left_square_bracket,ctrl+up", "choose(-1)", "Block before", id="conversation.previous"),
    Binding("right_square_bracket,ctrl+down", "choose(1)", "Block after", id="conversation.next"),
    Binding("enter,space", "toggle_block", "Open or close", id="conversation.toggle"),
    Binding("c", "copy_block", "Copy block", id="conversation.copy"),
    Binding("y", "copy_code", "Copy code", id="conversation.copy-code"),
    Binding("t", "toggle_reasoning", "Thoughts", id="conversation.reasoning"),
    Binding("escape,tab,q", "leave", "Back to the input", id="conversation.leave"),
)
