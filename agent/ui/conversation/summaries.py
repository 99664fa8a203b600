"""Events that are worth one quiet row."""

from agent.core.events import (
    CheckFinished,
    CompactionFinished,
    CompactionStarted,
    Notice,
    PrefixBroken,
    Retry,
    Rewound,
    SessionStarted,
    TurnFinished,
)
from agent.core.stats import StepStats
from agent.ui.change_text import change_text
from agent.ui.conversation.line import Span
from agent.ui.conversation.notes import Note
from agent.ui.text import count, duration, rate, share

_CHARACTERS_OF_A_TOKEN = 4
_CHECK_ROWS = 8
_LEVELS = {"info": ("·", "quiet"), "warning": ("!", "warn"), "error": ("✗", "bad")}


def session(event: SessionStarted) -> Note:
    window = f" · {count(event.context_tokens)} tokens of context" if event.context_tokens else ""
    return Note("·", ((f"{event.profile} · {event.model}{window}", "quiet"),))


def preparing(characters: int) -> tuple[Span, ...]:
    tokens = count(max(characters / _CHARACTERS_OF_A_TOKEN, 1))
    return (("writing a call", "quiet"), (f" · about {tokens} token{'' if tokens == '1' else 's'}", "quiet"))


def check(event: CheckFinished) -> Note:
    word, sign, style = ("passed", "✓", "good") if event.passed else ("failed", "✗", "bad")
    took = f"{event.seconds:.1f} s" if event.seconds < 1 else duration(event.seconds)
    note = Note(sign, ((f"check {word}", style), (f"  {event.command} · {took}", "quiet")), style=style)
    note.body = "" if event.passed else event.text
    note.shown_rows = _CHECK_ROWS
    return note


def remark(event: PrefixBroken | Retry | Notice) -> Note:
    match event:
        case PrefixBroken():
            return Note("↺", ((f"the prompt is read anew: {event.cause}", "quiet"),))
        case Retry():
            return Note("↻", ((f"{event.cause}; asking again ({event.attempt})", "quiet"),), style="warn")
        case Notice():
            sign, style = _LEVELS.get(event.level, _LEVELS["info"])
            first, _, more = event.text.partition("\n")
            note = Note(sign, ((first, style),), style=style)
            note.body, note.is_prose, note.shown_rows = more, True, 4
            return note


def change(event: Rewound | CompactionStarted | CompactionFinished) -> Note:
    """The conversation is another one from here on."""
    note = Note("↶" if isinstance(event, Rewound) else "·", ((change_text(event), "quiet"),))
    if isinstance(event, CompactionFinished):
        note.body = event.summary
    return note


def turn(event: TurnFinished) -> Note:
    """How a turn ended and what it cost; drafting only where there was some."""
    parts = [f"{event.steps} step{'s' * (event.steps != 1)}", *figures(event.stats)]
    spans: list[Span] = []
    if event.reason != "done":
        detail = f": {event.detail}" if event.detail and event.detail != "done" else ""
        words = event.reason.replace("_", " ")
        spans.append((f"{words}{detail}", "warn" if event.reason == "cancelled" else "bad"))
        spans.append(("  ", ""))
    spans.append((" · ".join(parts), "quiet"))
    sign = {"done": "─", "cancelled": "–"}.get(event.reason, "✗")
    return Note(sign, spans, style="bad" if sign == "✗" else "quiet", gap=True)


def figures(stats: StepStats) -> list[str]:
    """Rates divide by the model's time; tokens are the ones that were generated."""
    parts = [f"{count(stats.decoded_tokens)} tokens"] if stats.decoded_tokens else []
    if stats.decode_rate is not None:
        parts.append(f"{rate(stats.decode_rate)} tok/s")
    if stats.acceptance_rate is not None:
        parts.append(f"{share(stats.acceptance_rate)} of drafts accepted")
    seconds = stats.prompt_seconds + stats.decode_seconds
    if seconds > 0:
        parts.append(f"{duration(seconds)} of model time")
    if stats.source == "measured" and len(parts) > 1:
        parts.append("measured here")
    return parts
