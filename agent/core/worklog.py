"""What is known of a session from its own events: what was asked for, changed, read, run, and how that ended.

A summary that a model writes forgets and invents. What stands here was seen, so where a conversation was made
short it is told by us, and the model's own words are only about the rest.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agent.core.events import (
    OWN_CALL,
    CheckFinished,
    CompactionFinished,
    Event,
    Rewound,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    UserMessageAdded,
)
from agent.core.outside_text import shown_name
from agent.core.tool import FileDiff
from agent.core.trimming import cut

BEGINNING = "(Our earlier conversation, summed up:)"
NOTES = "Notes:"

_LEAST_CHARACTERS = 400
_PROMPTS_SHARE = 0.5
_SHORTEST_PROMPT = 120
_ANSWERS, _ANSWER_CHARACTERS = 3, 300
_MOST_FILES = 30
_MOST_COMMANDS = 4
_COMMAND_CHARACTERS = 160
_CHECK_LINES = 8
_CHECK_CHARACTERS = 600
_LOOKS = ("read",)
_WELL = "exit code 0"  # how the shell's results end


@dataclass(slots=True)
class _TurnRecord:
    """What one turn did. `changed` has for each path what was done to it, how often."""

    said: list[str] = field(default_factory=list)
    changed: dict[str, dict[str, int]] = field(default_factory=dict)
    read: dict[str, None] = field(default_factory=dict)
    commands: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    answer: str = ""


class WorkLog:
    """Collects the facts of a session from its events, old ones included. Turns taken back count no more."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._turns: list[_TurnRecord] = []
        self._check: CheckFinished | None = None
        self._running: dict[str, tuple[str, Mapping[str, object]]] = {}
        self._notes = ""
        for event in events:
            self.observe(event)

    @property
    def notes(self) -> str:
        """The model's own words in the last summary."""
        return self._notes

    def observe(self, event: Event) -> None:
        match event:
            case TurnStarted():
                if event.attempt > 1:
                    self._forget(0)
                self._turns.append(_TurnRecord())
            case UserMessageAdded() if not event.is_note:
                self._turn.said.append(event.text.strip())
            case ToolStarted() | ToolFinished() if event.call_id.startswith(OWN_CALL):
                return  # the model learns from messages what it is to know of that
            case ToolStarted():
                self._running[event.call_id] = (event.tool, event.arguments)
            case ToolFinished():
                self._ended(event)
            case CheckFinished():
                self._check = event
            case TurnFinished():
                self._turn.answer = " ".join(event.answer.split())
            case Rewound():
                self._go_back(event)
            case CompactionFinished() if event.summary:
                _, found, notes = event.summary.partition(f"\n{NOTES}\n")
                self._notes = notes.strip() if found else ""
            case _:
                return

    def facts(self, *, first_is_kept: bool, characters: int, shown: Sequence[str] = ()) -> str:
        """All of it as text for the model, in at most about so many characters.

        `first_is_kept` says that the first message stays in the conversation; `shown` are the messages of the
        person's and of the model's that stay. What they hold is not told again.
        """
        said = [text for turn in self._turns for text in turn.said if text]
        if first_is_kept:
            said = said[1:]
        said = [text for text in said if not any(text in one for one in shown)]
        room = max(_LEAST_CHARACTERS, characters)
        blocks = [
            _prompts(said, int(room * _PROMPTS_SHARE), first_is_kept),
            self._answers(shown),
            _listed("Files changed", self._changes()),
            _listed("Files read", self._only_read()),
            self._check_text(),
            self._last("Commands run last", [line for turn in self._turns for line in turn.commands]),
            self._last("What failed last", [line for turn in self._turns for line in turn.failures]),
        ]
        return cut("\n".join(filter(None, blocks)), room)

    @property
    def _turn(self) -> _TurnRecord:
        if not self._turns:
            self._turns.append(_TurnRecord())
        return self._turns[-1]

    def _ended(self, event: ToolFinished) -> None:
        tool, arguments = self._running.pop(event.call_id, (event.tool, {}))
        turn = self._turn
        for diff in event.diffs:
            done = turn.changed.setdefault(diff.path, {})
            kind = _kind(diff)
            done[kind] = done.get(kind, 0) + 1
        path, command = arguments.get("path"), arguments.get("command")
        if isinstance(command, str):
            turn.commands.append(f"`{_one_line(command)}` {_how_it_ended(event)}")
        elif event.outcome in ("error", "denied"):
            about = f" {shown_name(path)}" if isinstance(path, str) else ""
            turn.failures.append(f"{tool}{about}: {_one_line(event.text)}")
        elif tool in _LOOKS and isinstance(path, str):
            turn.read[path] = None

    def _go_back(self, event: Rewound) -> None:
        if event.what != "files":
            self._forget(max(0, event.to_turn - 1))
        for turn in self._turns:
            for path in (*event.restored, *event.deleted):
                turn.changed.pop(path, None)

    def _forget(self, first: int) -> None:
        """Empties the turns from that place on, which were taken back; they keep their numbers."""
        self._turns[first:] = [_TurnRecord() for _ in self._turns[first:]]

    def _answers(self, shown: Sequence[str]) -> str:
        """What the model said itself at the end of its last turns: a small one forgets that in its notes."""
        stay = [" ".join(text.split()) for text in shown]
        answers = [turn.answer for turn in self._turns if turn.answer]
        told = [one for one in answers if not any(one in text for text in stay)][-_ANSWERS:]
        lines = [f"- {cut(one, _ANSWER_CHARACTERS)}" for one in told]
        return "\n".join(["What you answered:", *lines]) if lines else ""

    def _changes(self) -> list[str]:
        all_changes: dict[str, dict[str, int]] = {}
        for turn in self._turns:
            for path, kinds in turn.changed.items():
                done = all_changes.setdefault(path, {})
                for kind, times in kinds.items():
                    done[kind] = done.get(kind, 0) + times
        return [
            f"{shown_name(path)} ({', '.join(map(_times, done.items()))})"
            for path, done in all_changes.items()
        ]

    def _only_read(self) -> list[str]:
        changed = self._all_changed()
        return [shown_name(path) for path in self._read() if path not in changed]

    def _all_changed(self) -> set[str]:
        return {path for turn in self._turns for path in turn.changed}

    def _read(self) -> list[str]:
        return list(dict.fromkeys(path for turn in self._turns for path in turn.read))

    def _check_text(self) -> str:
        if self._check is None:
            return ""
        if self._check.passed:
            return f"The check `{self._check.command}` passes."
        lines = self._check.text.strip().splitlines()[:_CHECK_LINES]
        shown = cut("\n".join(f"  {line}" for line in lines), _CHECK_CHARACTERS)
        return f"The check `{self._check.command}` fails:\n{shown}"

    def _last(self, title: str, lines: Sequence[str]) -> str:
        return _listed(title, list(dict.fromkeys(lines))[-_MOST_COMMANDS:])


def _prompts(said: Sequence[str], room: int, first_is_kept: bool) -> str:
    """What the person said, word for word; where there is too much, the middle of long texts goes."""
    if not said:
        return ""
    each = room // len(said)
    if each < _SHORTEST_PROMPT:
        said = said[-max(1, room // _SHORTEST_PROMPT) :]
        each = _SHORTEST_PROMPT
    spare = room - sum(min(len(text), each) for text in said)
    lines = []
    for text in reversed(said):  # what was said last counts most
        size = min(len(text), each + max(0, spare))
        spare -= max(0, size - each)
        lines.append(f"- {cut(text, size)}")
    since = " after that" if first_is_kept else ""
    return "\n".join([f"What I asked for{since}, word for word:", *reversed(lines)])


def _listed(title: str, items: Sequence[str]) -> str:
    if not items:
        return ""
    shown = items[-_MOST_FILES:]
    more = f" and {len(items) - len(shown)} before" if len(items) > len(shown) else ""
    return f"{title}: {', '.join(shown)}{more}"


def _kind(diff: FileDiff) -> str:
    if diff.before is None:
        return "new"
    return "deleted" if diff.after is None else "edited"


def _times(done: tuple[str, int]) -> str:
    kind, times = done
    return kind if times == 1 else f"{kind} {times} times"


def _how_it_ended(event: ToolFinished) -> str:
    lines = [line.strip() for line in event.text.splitlines() if line.strip()]
    if not lines or (event.outcome == "ok" and lines[-1] == _WELL):
        return "(ok)"
    return f"({_one_line(' … '.join(lines[-2:]))})"


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _COMMAND_CHARACTERS else f"{line[: _COMMAND_CHARACTERS - 1]}…"
