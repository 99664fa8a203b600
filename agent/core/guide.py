"""Narrowing what the next reply may be, for models that lose their way when everything is possible.

With constrained calls the schema of a reply is no part of the prompt, so it may change from step to step
without touching the prompt cache. A small model that would read the same file five times, rewrite the
tests, or call itself done while the check fails simply cannot. Nothing here decides what is safe: that is
the gate's business.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agent.core.events import CheckFinished, Event, ToolFinished, ToolStarted

LOOKING_TOOLS = ("read", "search", "glob", "shell")
# So many steps in a row may pass without a change before only changes are offered.
LOOKING_STEPS = 3
# Where the first message shows the files that the task names, so many changes may fail before the model may
# look at others.
CHANGES_BEFORE_LOOKING = 2
WHOLE_FILE_LINES = 150


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a reply may call. `tools` None means all; `paths` lists the values of a tool's `path`."""

    tools: frozenset[str] | None = None
    paths: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


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
    the first message, `new_files` names that the task mentions and that do not exist yet. `may_change`
    says whether the rules allow changes to a path at all. `briefed` says that the task names its files.
    """

    files: Mapping[str, int]
    shown: frozenset[str]
    new_files: tuple[str, ...]
    may_change: Callable[[str], bool]
    has_check: bool
    check_passes: bool
    whole_files: bool
    briefed: bool


class SmallModelGuide:
    """Keeps a small model on the short way: look, change, see the check, finish."""

    def __init__(self, tools: Sequence[str], surroundings: Surroundings) -> None:
        self._tools = frozenset(tools)
        self._around = surroundings
        self._shown = set(surroundings.shown)
        self._paths: dict[str, str] = {}
        self._steps_without_change = 0
        self._changes = 0
        self._check_passes = surroundings.check_passes

    def observe(self, event: Event) -> None:
        if isinstance(event, ToolStarted):
            self._paths[event.call_id] = str(event.arguments.get("path", ""))
        elif isinstance(event, ToolFinished):
            self._observe_tool(event)
        elif isinstance(event, CheckFinished):
            self._check_passes = event.passed

    def _observe_tool(self, event: ToolFinished) -> None:
        path = self._paths.pop(event.call_id, "")
        if event.diffs:
            self._changes += 1
            self._steps_without_change = 0
            self._shown.update(diff.path for diff in event.diffs)
        else:
            self._steps_without_change += 1
        if event.tool == "read" and event.outcome == "ok":
            self._shown.add(path)

    def offer(self) -> Offer:
        changeable = self._changeable()
        paths = {
            "read": tuple(path for path in self._around.files if path not in self._shown),
            "edit": tuple(path for path in changeable if not self._is_rewritten_whole(path)),
            "write": (
                *(path for path in changeable if self._is_rewritten_whole(path)),
                *self._around.new_files,
            ),
        }
        offered = {name for name in self._tools if self._is_offered(name, paths)}
        if not offered:
            return Offer()
        return Offer(
            tools=frozenset(offered), paths={name: listed for name, listed in paths.items() if listed}
        )

    def cue(self) -> str:
        """Small models follow the last line. Left alone with a task there, they copy it into a file."""
        offer = self.offer()
        if offer.tools is None or not offer.tools <= {"write", "edit", "finish"}:
            return ""
        if self._check_passes and "finish" in offer.tools and self._changes:
            return 'If the task is done now, call finish: {"tool": "finish", "answer": "..."}'
        whole = offer.paths.get("write", ()) if "write" in offer.tools else ()
        if len(whole) == 1:
            call = f'{{"tool": "write", "path": "{whole[0]}", "content": "..."}}'
            return f"Write the complete new file {whole[0]}: {call}"
        if whole:
            return f"Write the complete new version of a file, one after the other: {', '.join(whole)}"
        return ""

    def _changeable(self) -> list[str]:
        known = [path for path in self._around.files if path in self._shown]
        return [path for path in known if self._around.may_change(path)]

    def _is_rewritten_whole(self, path: str) -> bool:
        return self._around.whole_files and self._around.files.get(path, 0) <= WHOLE_FILE_LINES

    def _is_offered(self, name: str, paths: Mapping[str, tuple[str, ...]]) -> bool:
        if name == "finish":
            return self._check_passes if self._around.has_check else True
        if name in ("edit", "write") and not paths[name]:
            # Without a single known file to change, writing a new one under any name has to stay possible.
            return name == "write" and not paths["edit"]
        if name == "read" and not paths["read"]:
            return False
        return name not in LOOKING_TOOLS or self._may_look()

    def _may_look(self) -> bool:
        if self._around.briefed and self._changes < CHANGES_BEFORE_LOOKING and not self._check_passes:
            return False
        unseen = any(path not in self._shown for path in self._around.files)
        return unseen and self._steps_without_change < LOOKING_STEPS
