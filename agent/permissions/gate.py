"""The permission gate: may this tool call run, does a person have to be asked, or is it refused?

Nothing here asks or runs anything; the tool executor acts on the answer. Only a shell command loads the shell
grammar, everything else takes a few dozen microseconds.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agent.core.tool import Access
from agent.permissions.context import Circumstances, Finding, Mode, from_rule, judge_path, worst
from agent.permissions.rules import PATH_TOOLS, Rules, Verdict, exact_shell_rule

__all__ = ["Decision", "decide", "exact_shell_rule", "may_read"]

_PATH_KEYS = ("path", "file_path", "file", "filename", "folder", "directory", "dir", "root", "cwd")
_LIST_KEYS = ("paths", "files")
_SEARCH_TOOLS = frozenset({"search", "glob", "outline"})
_SUBJECT_LENGTH = 200  # characters of a command or path shown in a reason


@dataclass(frozen=True, slots=True)
class Decision:
    """What the gate says about one tool call.

    `reason` is one line for people and for the model. `rule` is the text of the person's rule that decided,
    if one did; `suggested_rule` would allow the call if it were an allow rule, None where no rule would.
    `places` are the real paths of files that were judged, None where the call is not about files alone.
    """

    verdict: Verdict
    reason: str
    rule: str | None = None
    suggested_rule: str | None = None
    places: frozenset[str] | None = None


def decide(
    tool_name: str,
    access: Access,
    arguments: Mapping[str, Any],
    *,
    workspace: Path,
    mode: Mode,
    rules: Rules,
    headless: bool,
    protected: Sequence[Path] = (),
) -> Decision:
    """Decides about one tool call.

    Args:
        tool_name: the tool, for example `read`, `edit`, `shell` or the name of a tool from elsewhere.
        access: what kind of thing the tool does.
        arguments: the call's validated arguments.
        workspace: the folder that may be worked in; also the folder that shell commands start in.
        mode: `ask`, `accept-edits`, `auto` or `plan`.
        rules: the person's rules from all layers.
        headless: nobody can be asked, so what would be asked is denied.
        protected: folders and files that are never written, besides `.git` and `.agent`.
    """
    around = Circumstances(Path(workspace), mode, rules, headless, tuple(protected))
    if access == "finish":
        return Decision("allow", "ending the task is always allowed")
    command = arguments.get("command")
    if access == "execute" and tool_name == "shell":
        subject = command if isinstance(command, str) else ""
        return _conclude(_judge_shell(subject, around), tool_name, subject, around)
    subject = next((str(arguments[key]) for key in (*_PATH_KEYS, *_LIST_KEYS) if arguments.get(key)), "")
    if tool_name in PATH_TOOLS:
        finding, places = _judge_file_tool(tool_name, access, arguments, around)
        return replace(_conclude(finding, tool_name, subject, around), places=places)
    finding = _judge_other_tool(tool_name, access, arguments, around)
    return _conclude(finding, tool_name, subject, around)


def may_read(
    path: Path,
    *,
    workspace: Path,
    mode: Mode,
    rules: Rules,
) -> bool:
    """Whether the tool `read` may be used on a file without a question; `decide` for many files.

    What is protected is protected from writing, so it makes no difference here.
    """
    around = Circumstances(Path(workspace), mode, rules, headless=True)
    return judge_path(around.locate(str(path)), "read", "read", around).verdict == "allow"


def _judge_shell(command: str, around: Circumstances) -> Finding:
    from agent.permissions.line import judge_line

    return judge_line(command, around)


def _judge_file_tool(
    tool: str, access: Access, arguments: Mapping[str, Any], around: Circumstances
) -> tuple[Finding, frozenset[str]]:
    """The finding, and the real paths that it is about."""
    if tool in {"write", "edit"}:
        access = "write"
    texts = _paths_in(arguments)
    if not texts and tool in _SEARCH_TOOLS:
        texts = ["."]
    if not texts:
        return Finding("ask", "the call names no path", suggestion=tool), frozenset()
    places = [around.locate(text) for text in _spellings(texts)]
    finding = worst(judge_path(place, tool, access, around) for place in places)
    return finding, frozenset(place.real for place in places)


def _judge_other_tool(
    tool: str, access: Access, arguments: Mapping[str, Any], around: Circumstances
) -> Finding:
    """Tools from elsewhere: nothing is known about them but their name, kind and the paths they are given."""
    findings = [judge_path(around.locate(text), tool, access, around) for text in _paths_in(arguments)]
    refused = worst(findings)
    if refused.verdict == "deny":
        return refused
    rule = around.rules.for_tool(tool, access)
    if rule is not None and rule.verdict == "deny":
        return from_rule(rule)
    if around.mode == "plan" and access != "read":
        return Finding("deny", f"plan mode only reads, and {tool} does more")
    if rule is not None:
        return from_rule(rule)
    return Finding("ask", f"{tool} is not one of the built-in tools", suggestion=tool)


def _paths_in(arguments: Mapping[str, Any]) -> list[str]:
    texts = [arguments[key] for key in _PATH_KEYS if isinstance(arguments.get(key), str | os.PathLike)]
    for key in _LIST_KEYS:
        if isinstance(arguments.get(key), list | tuple):
            texts += [text for text in arguments[key] if isinstance(text, str | os.PathLike)]
    return [os.fspath(text) for text in texts]


def _spellings(texts: list[str]) -> set[str]:
    """The paths as given and as the file tools read them, without blanks and quotes around."""
    return {*texts, *(text.strip().strip("'\"`") for text in texts)}


def _conclude(finding: Finding, tool: str, subject: str, around: Circumstances) -> Decision:
    finding = replace(finding, reason=_in_utf_8(finding.reason))
    rule = finding.rule.text if finding.rule is not None else None
    if finding.verdict == "allow":
        return Decision("allow", finding.reason, rule)
    suggestion = finding.suggestion if finding.verdict == "ask" else None
    if suggestion is not None and suggestion != _in_utf_8(suggestion):
        suggestion = None  # no file of settings could hold it
        finding = replace(finding, suggestion=None)
    shown = _in_utf_8(" ".join(subject.split()))
    if len(shown) > _SUBJECT_LENGTH:
        shown = shown[:_SUBJECT_LENGTH] + "..."
    what = f'{tool} "{shown}"' if shown else tool
    if finding.verdict == "ask" and around.headless:
        return Decision("deny", _headless_reason(what, finding), rule, suggestion)
    if finding.verdict == "ask":  # who is asked has the call in front of them
        return Decision("ask", finding.reason, rule, suggestion)
    return Decision("deny", f"not allowed: {what}: {finding.reason}", rule, suggestion)


def _in_utf_8(text: str) -> str:
    """Without the halves of characters that stand for the bytes of a name that is no UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _headless_reason(what: str, finding: Finding) -> str:
    if finding.suggestion is None:
        return f"not allowed without a person: {what}: {finding.reason}"
    # a JSON string is a TOML string too, as long as characters beyond ASCII stay as they are
    rule = json.dumps(finding.suggestion, ensure_ascii=False)
    remedy = f"add allow = [{rule}] to the task file or config"
    return f"not allowed without a person: {what} ({remedy}): {finding.reason}"
