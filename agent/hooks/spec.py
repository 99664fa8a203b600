"""What the settings say about hooks, typed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

HookEvent = Literal["session_start", "before_tool", "after_tool", "before_finish"]
HOOK_EVENTS: tuple[HookEvent, ...] = ("session_start", "before_tool", "after_tool", "before_finish")


@dataclass(frozen=True, slots=True, kw_only=True)
class HookSpec:
    """One hook. `tools` are names with wildcards, empty for every tool; `seconds` is its time limit.

    `sandbox` is false for a hook that has to reach further than the commands of the model may.
    """

    event: HookEvent
    command: str
    tools: tuple[str, ...] = ()
    seconds: float = 30.0
    sandbox: bool = True

    def is_about(self, tool: str) -> bool:
        return not self.tools or any(fnmatchcase(tool, pattern) for pattern in self.tools)


def specs_from(entries: Mapping[str, Sequence[Any]], seconds: float) -> tuple[HookSpec, ...]:
    """The hooks of `[hooks]`: for each event a list of command lines, or of tables with `command`.

    The settings are checked already; `seconds` holds where an entry names no limit of its own.
    """
    found: list[HookSpec] = []
    for event in HOOK_EVENTS:
        for entry in entries.get(event, ()):
            table: Mapping[str, Any] = {"command": entry} if isinstance(entry, str) else entry
            found.append(
                HookSpec(
                    event=event,
                    command=str(table["command"]),
                    tools=tuple(table.get("tools", ())),
                    seconds=float(table.get("seconds", seconds)),
                    sandbox=bool(table.get("sandbox", True)),
                )
            )
    return tuple(found)
