"""What made the conversation another one, in one line."""

from agent.core.events import CompactionFinished, CompactionStarted, Rewound
from agent.ui.text import count

_WHAT = {"chat": "the conversation", "files": "the files", "both": "conversation and files"}


def change_text(event: Rewound | CompactionStarted | CompactionFinished) -> str:
    """Going back with the files that it changed, or summing up with tokens before and after."""
    match event:
        case Rewound():
            parts = [f"{_WHAT[event.what]} went back to before turn {event.to_turn}"]
            parts += [f"put back: {', '.join(event.restored)}"] if event.restored else []
            parts += [f"removed: {', '.join(event.deleted)}"] if event.deleted else []
            return "; ".join([*parts, *(f"left {one}" for one in event.left)])
        case CompactionStarted():
            return f"the model sums up {count(event.before)} tokens"
        case CompactionFinished():
            if event.after == event.before:
                return f"nothing was summed up: {event.detail}".removesuffix(": ")
            return f"summed up: {count(event.before)} tokens became about {count(event.after)}"
