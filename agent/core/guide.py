"""Narrowing what the next reply may be, for models that lose their way when everything is possible.

With constrained calls the schema of a reply is no part of the prompt, so it may change from step to step
without touching the prompt cache. A small model that would read the same file five times, rewrite the
tests, or call itself done while the check fails simply cannot. Nothing here decides what is safe: that is
the gate's business.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Protocol

from agent.core.events import (
    CheckFinished,
    CompactionFinished,
    Event,
    StepFinished,
    ToolFinished,
    ToolStarted,
)

WHOLE_FILE_LINES = 150
# `File "a/b.py", line 3` and `a/b.py:3`, as most languages' tools write it.
_PLACE = re.compile(r'File "([^"\n]+)", line \d|([\w./-]+\.\w+):\d')


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a reply may be.

    `tools` None means every call. `paths` lists the values of a tool's `path`. `blocks` are files that may
    be written whole, as a block of text behind the call instead of a JSON string: small models leave files
    out of JSON strings with "..." but copy a block line by line. `temperature` replaces the usual one.
    `plain` calls have no optional arguments: small models fill them in, and read a file line by line.
    """

    tools: frozenset[str] | None = None
    paths: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    blocks: tuple[str, ...] = ()
    temperature: float | None = None
    plain: bool = False


class Guide(Protocol):
    def observe(self, event: Event) -> None:
        """Sees every event of the turn."""
        ...

    def offer(self) -> Offer:
        """What the next reply may be."""
        ...

    def cue(self) -> str:
        """What the model is told to do next, at the end of a message; empty where it decides itself."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the guide knows of the workspace when a turn begins.

    `files` are the paths in the workspace with their number of lines, `shown` the ones whose text is in
    the first message, `mentioned` those that the task names, `new_files` names in it that do not exist yet.
    `may_change` says whether the rules allow changes to a path at all. `retry_temperature` is for a reply
    after one that changed nothing: the same sample again would be no help. Without `blocks` the server cannot
    bind a reply to a file as a block of text, and files are arguments of `write`.
    """

    files: Mapping[str, int]
    shown: frozenset[str]
    mentioned: tuple[str, ...]
    new_files: tuple[str, ...]
    may_change: Callable[[str], bool]
    has_check: bool
    check_passes: bool
    retry_temperature: float | None = None
    blocks: bool = True

    def named_targets(self) -> tuple[str, ...]:
        """The files that the task names and that may be changed, those that are not there yet at the end."""
        named = [path for path in self.mentioned if path in self.files]
        named += [path for path in self.new_files if path not in named]
        return tuple(path for path in named if self.may_change(path))


class SmallModelGuide:
    """Keeps a small model on the short way: look where it must, write files whole, see the check, finish."""

    def __init__(self, tools: Sequence[str], surroundings: Surroundings) -> None:
        self._tools = frozenset(tools)
        self._around = surroundings
        self._shown = set(surroundings.shown)
        self._changed: set[str] = set()
        self._tried: set[str] = set()
        self._changed_nothing = False
        self._blamed = ""
        self._paths: dict[str, str] = {}
        self._check_passes = surroundings.check_passes

    def observe(self, event: Event) -> None:
        if isinstance(event, ToolStarted):
            self._paths[event.call_id] = str(event.arguments.get("path", ""))
        elif isinstance(event, ToolFinished):
            path = self._paths.pop(event.call_id, "")
            self._changed.update(diff.path for diff in event.diffs)
            if event.tool in ("write", "edit"):
                self._changed_nothing = not event.diffs
                self._tried.add(path)
                if self._tried.issuperset(self._targets()):
                    self._tried = {path}
            if event.diffs or (event.tool == "read" and event.outcome == "ok"):
                self._shown.update({path, *(diff.path for diff in event.diffs)})
        elif isinstance(event, CompactionFinished) and event.summary:
            self._shown = set(self._around.shown) if event.opening_kept else set()
        elif isinstance(event, StepFinished):
            self._changed_nothing = self._changed_nothing or event.stop_reason in ("repetition", "length")
        elif isinstance(event, CheckFinished):
            self._check_passes = event.passed
            self._blamed = self._blamed_by(event.text)

    def offer(self) -> Offer:
        if self.is_solved():
            return Offer(tools=frozenset({"finish"}) & self._tools)
        targets = self._targets()
        if any(self._is_large(path) for path in targets):
            return self._edit_offer(targets)
        unseen = () if targets else self._unseen()
        tools = {"write"} if targets else set()
        if unseen:
            tools.add("read")
        if self._may_finish(targets):
            tools.add("finish")
        if not targets and not unseen:
            return Offer()
        return Offer(
            tools=frozenset(tools) & self._tools,
            paths={"read": unseen},
            blocks=self._in_turn(targets),
            temperature=self._around.retry_temperature if self._changed_nothing else None,
        )

    def _in_turn(self, targets: tuple[str, ...]) -> tuple[str, ...]:
        """Which of the files may be written next: first each once, code before tests.

        Then the one where the check failed, else those that were not written in this round. A small model
        likes to write the same file again, and overlooks where an error came from.
        """
        fresh = [path for path in targets if path not in self._changed and path not in self._tried]
        if fresh:
            return tuple(path for path in fresh if not is_test(path)) or tuple(fresh)
        if self._blamed in targets and not self._changed_nothing:
            return (self._blamed,)
        return tuple(path for path in targets if path not in self._tried) or targets

    def cue(self) -> str:
        """Small models follow the last line. Left alone with a task there, they copy it into a file."""
        offer = self.offer()
        if offer.tools == {"finish"}:
            return 'The task is done. Say what you changed: {"tool": "finish", "answer": "..."}'
        if not offer.blocks:
            return ""
        finish = ', or call finish if the task is done: {"tool": "finish", "answer": "..."}'
        ending = finish if "finish" in (offer.tools or ()) else ""
        form = "in a ``` block" if self._around.blocks else "with the write tool"
        if len(offer.blocks) == 1:
            return f"Write the complete file {offer.blocks[0]} {form}{ending}"
        return f"Write one of these files completely {form}: {', '.join(offer.blocks)}{ending}"

    def _blamed_by(self, failure: str) -> str:
        """The target that comes last in the places that a failure names: the innermost of a traceback."""
        places = [one or other for one, other in _PLACE.findall(failure)]
        for place in reversed(places):
            for target in self._targets():
                if place == target or place.endswith(f"/{target}"):
                    return target
        return ""

    def is_solved(self) -> bool:
        """Whether a check that failed at first passes now: there is nothing left that could be shown."""
        return self._around.has_check and not self._around.check_passes and self._check_passes

    def _may_finish(self, targets: Sequence[str]) -> bool:
        if self._around.has_check and not self._check_passes:
            return False
        return bool(self._changed) or not targets

    def _targets(self) -> tuple[str, ...]:
        """The files that the next reply may write, the ones that the task names before all others."""
        candidates = self._around.named_targets() or tuple(self._around.files)
        open_ones = [path for path in candidates if self._is_open(path)]
        if self._around.has_check and not self._check_passes:
            return tuple(open_ones)
        return tuple(path for path in open_ones if path not in self._changed)

    def _is_open(self, path: str) -> bool:
        known = path in self._shown or path not in self._around.files
        return known and self._around.may_change(path)

    def _is_large(self, path: str) -> bool:
        return self._around.files.get(path, 0) > WHOLE_FILE_LINES

    def _unseen(self) -> tuple[str, ...]:
        return tuple(path for path in self._around.files if path not in self._shown)

    def _edit_offer(self, targets: Sequence[str]) -> Offer:
        """A file that is too long to be written anew is edited, with everything else still at hand."""
        tools = self._tools if self._may_finish(targets) else self._tools - {"finish"}
        return Offer(tools=tools, paths={"edit": tuple(targets), "write": tuple(targets)})


def is_test(path: str) -> bool:
    """Whether a file holds tests, by its name."""
    name = PurePosixPath(path)
    return name.stem.startswith("test_") or name.stem.endswith("_test") or "tests" in name.parts
