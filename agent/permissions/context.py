"""What every part of the gate needs to know about a call, and what it answers."""

import glob
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from agent.core.tool import Access
from agent.permissions.paths import Place, is_within, locate
from agent.permissions.rules import Rule, Rules, Verdict

Mode = Literal["ask", "accept-edits", "auto", "plan"]
MODES: tuple[Mode, ...] = ("ask", "accept-edits", "auto", "plan")


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Where and under which rules a call is made."""

    workspace: Path
    mode: Mode
    rules: Rules
    headless: bool
    protected: tuple[Path, ...] = ()

    @property
    def edits_are_accepted(self) -> bool:
        return self.mode in {"accept-edits", "auto"}

    @property
    def runners_are_allowed(self) -> bool:
        return self.edits_are_accepted or (self.headless and self.mode != "plan")

    def locate(self, text: str, base: Path | None = None) -> Place:
        return locate(text, base or self.workspace, self.workspace, self.protected)


@dataclass(frozen=True, slots=True)
class Finding:
    """A verdict about one part of a call.

    `rule` is the person's rule behind it, `suggestion` one that would allow it. `blind`: what is used is only
    known when the line runs, so any rule about files may be about it.
    """

    verdict: Verdict
    reason: str
    rule: Rule | None = None
    suggestion: str | None = None
    blind: bool = False

    def suggesting(self, suggestion: str) -> "Finding":
        return replace(self, suggestion=suggestion) if self.suggestion is not None else self


def allowed(reason: str, rule: Rule | None = None) -> Finding:
    return Finding("allow", reason, rule)


def from_rule(rule: Rule, *, uncertain: bool = False) -> Finding:
    """What a rule says; a deny rule that only may fit asks."""
    if uncertain:
        return Finding(
            "ask", f"whether the {rule.verdict} rule {rule.text} from {rule.source} fits is not known", rule
        )
    return Finding(rule.verdict, f"{rule.verdict} rule {rule.text} from {rule.source}", rule)


def worst(findings: Iterable[Finding]) -> Finding:
    """The strictest of the findings; of equal ones the first."""
    order = ("deny", "ask", "allow")
    return min(
        findings, key=lambda finding: order.index(finding.verdict), default=allowed("there is nothing to ask")
    )


def judge_path(place: Place, tool: str, access: Access, around: Circumstances) -> Finding:
    """Decides whether a tool may use one path."""
    writes = access == "write"
    if writes and place.protected:
        return Finding(
            "deny", f"{place.text} belongs to git or to the agent's own settings, which tools never write"
        )
    rule = around.rules.for_path(tool, access, place, around.workspace)
    if rule is not None and rule.verdict == "deny":
        return from_rule(rule)
    if place.is_device:
        return allowed(f"{place.text} keeps nothing")
    if writes and around.mode == "plan":
        return Finding("deny", f"plan mode only reads, and this writes {place.text}")
    if rule is not None:
        return from_rule(rule)
    concern = _concern(place, around, writes=writes)
    if concern is None:
        return allowed(f"{place.text} is in the workspace")
    return Finding("ask", concern, suggestion=f"{tool}({path_rule(place, around.workspace)})")


def _concern(place: Place, around: Circumstances, *, writes: bool) -> str | None:
    """Why a person should be asked about a path that no rule is about."""
    if not place.inside:
        return f"{place.text} is outside the workspace"
    if place.secret:
        return f"{place.text} looks like a file with secrets"
    if writes and _has_other_names(place.real):
        return f"{place.text} is a hard link: the same file has other names, maybe outside the workspace"
    if writes and not around.edits_are_accepted:
        return f"it writes {place.text}"
    return None


def _has_other_names(path: str) -> bool:
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 1


def path_rule(place: Place, workspace: Path) -> str:
    """A path pattern that fits this file and nothing else."""
    root = os.path.realpath(workspace)
    if not is_within(place.real, root):
        return glob.escape(place.real)
    return "./" + glob.escape(os.path.relpath(place.real, root))
