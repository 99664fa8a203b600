"""From events to blocks. It knows no widget: what changed is collected until the view has time to draw."""

import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agent.core.events import (
    ApprovalRequest,
    ApprovalSettled,
    AssistantReplied,
    CheckFinished,
    CompactionFinished,
    CompactionStarted,
    Event,
    Notice,
    PrefixBroken,
    ReasoningDelta,
    Retry,
    Rewound,
    SessionStarted,
    StepStarted,
    TextDelta,
    ToolCallDelta,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    UserMessageAdded,
)
from agent.ui.conversation import summaries
from agent.ui.conversation.block import Block
from agent.ui.conversation.card import CardState, ToolCard
from agent.ui.conversation.document import Document
from agent.ui.conversation.markdown import MarkdownStream
from agent.ui.conversation.notes import Note, Reasoning, Reply, UserText
from agent.ui.conversation.pieces import Piece

# A reply that is itself a call (constrained output): its card says the same, more readably.
_SETTLED: dict[str, CardState] = {"deny": "denied", "withdrawn": "cancelled"}
_IS_CALL = re.compile(r'\s*\{\s*"tool"\s*:')


class Transcript:
    """The conversation as a `Document`. `clock` gives seconds that only go forward.

    Attributes:
        document: the blocks.
        last_reply: the model's last words, as written.
        opens_reasoning: whether thoughts are shown open.
    """

    def __init__(self, document: Document, clock: Callable[[], float] = time.monotonic) -> None:
        self.document = document
        self.last_reply = ""
        self.opens_reasoning = False
        self._clock = clock
        self._dirty: dict[int, Block] = {}
        self._stream: MarkdownStream | None = None
        self._streamed: list[str] = []
        self._has_spoken = False  # in this step, whether or not its stream is still open
        self._stream_begin = 0
        self._message = 0
        self._reasoning: Reasoning | None = None
        self._reasoning_since = 0.0
        self._thought: list[str] = []
        self._cards: dict[str, ToolCard] = {}
        self._since: dict[str, float] = {}
        self._requests: dict[str, str] = {}
        self._preparing: Note | None = None
        self._prepared = 0
        self._expected: list[str] = []
        self._own_commands: set[str] = set()

    @property
    def running(self) -> list[ToolCard]:
        """The calls that run now."""
        return [self._cards[call] for call in self._since if self._cards[call].state == "running"]

    def add_user(self, text: str) -> None:
        """Shows what a person just sent; the event that follows for it is not shown a second time."""
        self._close_streams()
        self._append(UserText(text))
        self._expected.append(text.strip())

    def load(self, events: Iterable[Event]) -> None:
        """Appends what was recorded earlier. Calls without an end count as cancelled."""
        for event in events:
            self.apply(event)
        self._close_streams()
        for card in self._cards.values():
            if card.state in ("running", "waiting"):
                card.state = "cancelled"
                self._mark(card)
        self._cards.clear()
        self._since.clear()
        self._requests.clear()
        self._dirty.clear()  # what is in view is laid out anyway, and nothing else need be

    def tick(self) -> list[ToolCard]:
        """Moves the clocks of running calls on, and returns these."""
        cards = self.running
        for card in cards:
            card.seconds = self._clock() - self._since[card.call_id]
        return cards

    def take_dirty(self) -> list[Block]:
        """The blocks that look different since the last time, in the order in which they changed."""
        if self._stream is not None:
            self._stream.preview()
        if self._reasoning is not None:
            self._reasoning.seconds = self._clock() - self._reasoning_since
            self._mark(self._reasoning)
        dirty = [block for block in self._dirty.values() if block.index >= 0]
        self._dirty.clear()
        return dirty

    def set_reasoning(self, *, is_open: bool) -> list[Block]:
        """Opens or closes all thoughts; returns them."""
        self.opens_reasoning = is_open
        blocks: list[Block] = []
        for block in self.document.blocks:
            if isinstance(block, Reasoning) and block.is_open != is_open:
                block.toggle()
                blocks.append(block)
        return blocks

    def apply(self, event: Event) -> None:
        """Takes one event. Deltas only touch the block they extend."""
        match event:
            case TextDelta():
                self._text(event.text)
            case ReasoningDelta():
                self._think(event.text)
            case ToolCallDelta():
                self._prepare(event.text)
            case ToolOutput():
                self._output(event)
            case AssistantReplied():
                self._replied(event)
            case ToolStarted():
                self._started(event.call_id, event.tool, event.arguments)
            case ToolFinished():
                self._finished(event)
            case ApprovalRequest():
                self._asks(event)
            case ApprovalSettled():
                self._settled(event)
            case _:
                self._other(event)

    def _other(self, event: Event) -> None:
        match event:
            case UserMessageAdded():
                self._user(event)
            case StepStarted() | TurnStarted():
                self._close_streams()
                self._has_spoken = False
            case CheckFinished():
                self._append(summaries.check(event))
            case SessionStarted():
                self._append(summaries.session(event))
            case PrefixBroken() | Retry() | Notice():
                self._append(summaries.remark(event))
            case Rewound() | CompactionStarted() | CompactionFinished():
                self._append(summaries.change(event))
            case TurnFinished():
                self._turn_finished(event)
            case _:
                return

    def put(self, piece: Piece) -> None:
        """Part of `Sheet`."""
        piece.message = self._message
        self._place(piece)

    def take_last(self, piece: Piece) -> None:
        """Part of `Sheet`: the last piece is made again in another form."""
        if piece.index == len(self.document) - 1:
            self.document.remove_last()

    def changed(self, piece: Piece) -> None:
        """Part of `Sheet`."""
        self._mark(piece)

    def _text(self, text: str) -> None:
        if self._stream is None:
            if not text.strip():
                return
            self._end_reasoning()
            self._drop_preparing()
            self._message += 1
            self._streamed = []
            self._stream_begin = len(self.document)
            self._stream = MarkdownStream(self)
            self._has_spoken = True
            text = text.lstrip("\n")
        self._streamed.append(text)
        self._stream.feed(text)

    def _think(self, text: str) -> None:
        if self._reasoning is None:
            if not text.strip():
                return
            self._close_streams()
            self._reasoning = Reasoning(is_open=self.opens_reasoning)
            self._reasoning.is_running = True
            self._reasoning_since = self._clock()
            self._place(self._reasoning)
        self._thought.append(text)
        self._reasoning.feed(text)
        self._mark(self._reasoning)

    def _prepare(self, text: str) -> None:
        """A call that is being written: only that, and how much of it, is worth knowing."""
        if self._preparing is None:
            self._close_streams()
            self._preparing = Note("◌", ())
            self._prepared = 0
            self._append_raw(self._preparing)
        self._prepared += len(text)
        self._preparing.spans = summaries.preparing(self._prepared)
        self._mark(self._preparing)

    def _replied(self, event: AssistantReplied) -> None:
        thought = bool(self._thought)
        text = event.text.strip()
        streamed = "".join(self._streamed).strip() if self._has_spoken else ""
        self._drop_preparing()
        if self._has_spoken and text and text != streamed:
            self._mend(text, streamed)
        had_stream, self._has_spoken = self._has_spoken, False
        self._close_streams()
        self._thought = []
        if not thought and event.reasoning.strip() and not had_stream:
            self._place(Reasoning(event.reasoning.strip(), is_open=self.opens_reasoning))
        if not text or _IS_CALL.match(text):
            return
        self.last_reply = text
        if not had_stream:
            self._place(Reply(text))

    def _mend(self, text: str, streamed: str) -> None:
        """Deltas may be dropped on the way; the whole reply is what counts."""
        if self._stream is not None and text.startswith(streamed):
            self._stream.feed(text[len(streamed) :])
            return
        self._stream = None
        while len(self.document) > self._stream_begin:
            self.document.remove_last()
        self._message += 1
        self._stream = MarkdownStream(self)
        self._stream.feed(text)

    def _user(self, event: UserMessageAdded) -> None:
        self._close_streams()
        text = event.text
        if event.is_note and self._tells_own_command(text):
            return
        bare = text.strip()
        for expected in self._expected:
            if expected in bare:
                self._expected.remove(expected)
                return
        self._append(UserText(text))

    def _tells_own_command(self, text: str) -> bool:
        """Whether the model is told of a command of the person's, which has a card already."""
        return any(text.startswith(f"I ran `{command}` myself:") for command in self._own_commands)

    def _started(self, call_id: str, tool: str, arguments: Mapping[str, Any]) -> None:
        self._close_streams()
        card = self._cards.get(call_id)
        if card is None or card.state not in ("running", "waiting"):
            card = ToolCard(call_id, tool, arguments)
            self._cards[call_id] = card
            if card.is_own:
                self._own_commands.add(str(arguments.get("command", "")))
            self._append_raw(card)
        self._since.setdefault(call_id, self._clock())

    def _output(self, event: ToolOutput) -> None:
        card = self._cards.get(event.call_id)
        if card is not None:
            card.add_output(event.text)
            self._mark(card)

    def _finished(self, event: ToolFinished) -> None:
        if event.call_id not in self._cards:
            self._started(event.call_id, event.tool, {})
        card = self._cards.pop(event.call_id)
        self._since.pop(event.call_id, None)
        card.finish(event)
        self._mark(card)

    def _asks(self, event: ApprovalRequest) -> None:
        self._started(event.call_id, event.tool, event.arguments)
        self._requests[event.request_id] = event.call_id
        card = self._cards[event.call_id]
        card.state = "waiting"
        self._mark(card)

    def _settled(self, event: ApprovalSettled) -> None:
        card = self._cards.get(self._requests.pop(event.request_id, ""))
        if card is None or card.state != "waiting":
            return
        card.state = _SETTLED.get(event.outcome, "running")
        card.decision = event.reason
        if card.state == "running":
            self._since[card.call_id] = self._clock()
        self._mark(card)

    def _turn_finished(self, event: TurnFinished) -> None:
        self._close_streams()
        answer = event.answer.strip()
        if answer and answer != self.last_reply:
            self.last_reply = answer
            self._place(Reply(answer))
        self._thought = []
        self._append(summaries.turn(event))

    def _append(self, block: Block) -> None:
        self._close_streams()
        self._append_raw(block)

    def _append_raw(self, block: Block) -> None:
        """Quiet rows and cards stand together; all else is set off."""
        before = self.document.blocks[-1] if self.document.blocks else None
        if isinstance(block, ToolCard):
            block.gap = not isinstance(before, ToolCard) or before.has_body
        elif isinstance(block, Note) and not block.gap:
            block.gap = not isinstance(before, Note | ToolCard) or (
                isinstance(before, ToolCard) and bool(before.diffs)
            )
        self._place(block)

    def _place(self, block: Block) -> None:
        self.document.append(block)
        self._mark(block)

    def _mark(self, block: Block) -> None:
        self._dirty[id(block)] = block

    def _close_streams(self) -> None:
        self._drop_preparing()
        if self._stream is not None:
            self._stream.finish()
            self._stream = None
            self.last_reply = "".join(self._streamed).strip() or self.last_reply
        self._end_reasoning()

    def _end_reasoning(self) -> None:
        if self._reasoning is not None:
            self._reasoning.seconds = self._clock() - self._reasoning_since
            self._reasoning.is_running = False
            self._mark(self._reasoning)
            self._reasoning = None

    def _drop_preparing(self) -> None:
        if self._preparing is not None and self._preparing.index == len(self.document) - 1:
            self.document.remove_last()
        self._preparing = None


def merged(inbox: list[Event]) -> list[Event]:
    """Deltas of one kind that follow each other as one: a stream is cut into tokens, a screen is not."""
    fewer: list[Event] = []
    texts: list[str] = []
    kind: type[TextDelta] | type[ReasoningDelta] | None = None
    for event in inbox:
        if kind is not None and isinstance(event, kind):
            texts.append(event.text)
            continue
        if kind is not None:
            fewer.append(kind(text="".join(texts)))
            kind = None
        if isinstance(event, TextDelta | ReasoningDelta):
            kind, texts = type(event), [event.text]
        else:
            fewer.append(event)
    if kind is not None:
        fewer.append(kind(text="".join(texts)))
    return fewer
