"""Permission rules: what a person allows, wants to be asked about, or denies.

A rule is `TOOL`, `TOOL(PATTERN)` or `*`. Of all rules that fit a call, deny beats ask and ask beats allow,
whatever their order and wherever they come from; so where layers meet, the stricter one holds.
"""

import fnmatch
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from agent.core.errors import UsageError
from agent.core.likeness import most_alike
from agent.core.tool import Access
from agent.permissions.paths import Place
from agent.permissions.patterns import CommandPattern, Match, PathPattern, parse_command_pattern
from agent.permissions.words import Script, SimpleCommand, Word

Verdict = Literal["allow", "ask", "deny"]

PATH_TOOLS = ("read", "search", "glob", "outline", "write", "edit")
_TOOLS_WITH_PATTERN = (*PATH_TOOLS, "shell")
_MEANT = {"Bash": "shell"}
"""What others call a tool. No tool has capitals in its name, so such a rule would hold nothing."""
_COVERED = {"read": ("search", "glob", "outline"), "write": ("edit",)}
_RULE = re.compile(r"\s*(?P<tool>[\w*?.:-]+)\s*(?:\((?P<argument>.*)\))?\s*", re.DOTALL)
_OF_A_SERVER = re.compile(r"mcp__(?P<server>[\w*?-]+?)(?:__(?P<tool>[\w*?-]+))?")
"""What others call a tool of an MCP server, which is `SERVER__TOOL` here."""
_ORDER: tuple[Verdict, ...] = ("deny", "ask", "allow")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `source` names where it was written, for messages.

    `argument` is None for a rule about every use of the tool. `verbatim` rules allow one command line as it
    is, and each of its parts.
    """

    verdict: Verdict
    text: str
    source: str
    tool: str
    argument: str | None = None
    path: PathPattern | None = None
    command: CommandPattern | None = None
    verbatim: bool = False

    @property
    def is_about_everything(self) -> bool:
        return self.tool == "*"

    def covers_tool(self, tool: str, access: Access) -> bool:
        if self.tool == "*" or fnmatch.fnmatchcase(tool, self.tool):
            return True
        if self.verdict == "allow":
            return tool in _COVERED.get(self.tool, ())
        elsewhere = _OF_A_SERVER.fullmatch(self.tool)
        if elsewhere and fnmatch.fnmatchcase(tool, f"{elsewhere['server']}__{elsewhere['tool'] or '*'}"):
            return True
        return {"read": "read", "write": "write", "execute": "shell"}.get(access) == self.tool


@dataclass(frozen=True, slots=True)
class Rules:
    """All rules that hold, from every layer."""

    rules: tuple[Rule, ...] = ()

    def __add__(self, other: "Rules") -> "Rules":
        return Rules(self.rules + other.rules)

    def including(self, *rules: Rule) -> "Rules":
        return Rules(self.rules + rules)

    def called_by(self, caller: str, tool: str) -> "Rules":
        """These, and for `tool` what they say of the one by which the model calls it, `mcp_call` say."""
        about = (rule for rule in self.rules if rule.verdict != "allow" and rule.argument is None)
        too = (replace(rule, tool=tool) for rule in about if fnmatch.fnmatchcase(caller, rule.tool))
        return Rules((*self.rules, *too)) if caller else self

    def for_tool(self, tool: str, access: Access) -> Rule | None:
        """The rule about a tool as a whole that decides, if any."""
        return _strictest(
            rule for rule in self.rules if rule.argument is None and rule.covers_tool(tool, access)
        )

    def for_path(self, tool: str, access: Access, place: Place, workspace: Path) -> Rule | None:
        """The rule that decides about one path, if any."""
        return _strictest(
            rule
            for rule in self.rules
            if rule.covers_tool(tool, access) and not rule.command and _fits_path(rule, place, workspace)
        )

    def about_files(self, access: Access) -> tuple[Rule, ...]:
        """The deny and ask rules about reading or writing files, the strictest first."""
        found = (
            rule
            for rule in self.rules
            if rule.verdict != "allow"
            and not (rule.is_about_everything or rule.command)
            and rule.covers_tool(access, access)
        )
        return tuple(sorted(found, key=lambda rule: _ORDER.index(rule.verdict)))

    def for_command(
        self, command: SimpleCommand, forms: Sequence[Sequence[Word]]
    ) -> tuple[Rule, Match] | None:
        """The rule that decides about one simple command, if any.

        Args:
            command: the command as it is in the line; an allow rule has to fit exactly this.
            forms: other ways to write it (without the program's folder, without global options) and commands
                that it may start; a deny or ask rule may fit any of these.

        Returns:
            The rule, and MAYBE when a deny or ask rule fits or not depending on what is only known later.
        """
        for verdict in ("deny", "ask"):
            maybe: Rule | None = None
            for rule in self._shell_rules(verdict):
                if rule.command is None:
                    return rule, Match.YES
                matches = {rule.command.match(form) for form in (command.words, *forms)}
                if Match.YES in matches:
                    return rule, Match.YES
                if Match.MAYBE in matches or command.doubts:
                    maybe = maybe or rule
            if maybe is not None:
                return maybe, Match.MAYBE
        for rule in self._shell_rules("allow"):
            if rule.command is None and not rule.verbatim:
                return rule, Match.YES
            if rule.command is not None and rule.command.match(command.words) is Match.YES:
                return rule, Match.YES
        return None

    def restricts_commands(self) -> Rule | None:
        """A deny or ask rule about commands, if there is one."""
        return _strictest(rule for verdict in ("deny", "ask") for rule in self._shell_rules(verdict))

    def allowing_line(self, line: str) -> Rule | None:
        """The allow rule that is word for word this command line, or is about every command."""
        for rule in self._shell_rules("allow"):
            if rule.argument is None or rule.argument.strip() == line.strip():
                return rule
        return None

    def verbatim_rules(self) -> tuple[Rule, ...]:
        return tuple(rule for rule in self.rules if rule.verbatim)

    def _shell_rules(self, verdict: str) -> Iterable[Rule]:
        return (
            rule for rule in self.rules if rule.verdict == verdict and rule.covers_tool("shell", "execute")
        )


def parse_rule(text: object, verdict: Verdict, source: str) -> Rule:
    """Reads one rule.

    Args:
        text: the rule, as in `shell(git diff *)`.
        verdict: what it says.
        source: where it was written, for messages (a file and key, say).

    Raises:
        UsageError: it is not a rule; the message names the rule and `source`.
    """
    where = f"in {source}: {verdict} rule {text!r}"
    if not isinstance(text, str) or not text.strip():
        raise UsageError(
            f"{where} is not a text like 'shell(pytest *)'", "write a tool's name, or TOOL(PATTERN)"
        )
    found = _RULE.fullmatch(text)
    if found is None:
        raise UsageError(
            f"{where} is not TOOL or TOOL(PATTERN)", "examples: edit(*), read(~/notes/**), shell(make *)"
        )
    tool, argument = found["tool"], found["argument"]
    meant = _MEANT.get(tool, tool.lower())
    if meant != tool and meant in _TOOLS_WITH_PATTERN:
        right = meant if argument is None else f"{meant}({argument})"
        raise UsageError(f"{where}: there is no tool {tool}", f"did you mean {right}?")
    if argument is None:
        return Rule(verdict, text, source, tool)
    argument = argument.strip()
    if not argument:
        raise UsageError(
            f"{where} has nothing between its brackets", f"for every use write {tool} without brackets"
        )
    if argument in {"*", "**"}:
        return Rule(verdict, text, source, tool)
    if tool not in _TOOLS_WITH_PATTERN:
        close = most_alike(tool, _TOOLS_WITH_PATTERN)
        hint = f"did you mean {close}({argument})?" if close else f"write {tool} without brackets"
        raise UsageError(f"{where}: only {', '.join(_TOOLS_WITH_PATTERN)} take a pattern", hint)
    if tool != "shell":
        if len(argument) > 1 and argument[0] == argument[-1] and argument[0] in "'\"`":
            raise UsageError(
                f"{where}: a path is written without quotes", f"write {tool}({argument[1:-1].strip()})"
            )
        return Rule(verdict, text, source, tool, argument, path=PathPattern(argument))
    if argument.endswith(":*"):
        raise UsageError(
            f"{where}: the words of a command are apart by blanks", f"write shell({argument[:-2]} *)"
        )
    try:
        return Rule(verdict, text, source, tool, argument, command=parse_command_pattern(argument))
    except ValueError as problem:
        raise UsageError(
            f"{where}: {problem}", "quote a word as in a shell, or leave the quote out"
        ) from None


def parse_rules(
    *,
    allow: Iterable[object] = (),
    ask: Iterable[object] = (),
    deny: Iterable[object] = (),
    source: str = "the settings",
) -> Rules:
    """Reads the rules of one layer. What is a `Rule` already, as from `exact_shell_rule`, is kept.

    Raises:
        UsageError: one of them is not a rule.
    """
    layers: tuple[tuple[Verdict, Iterable[object]], ...] = (("allow", allow), ("ask", ask), ("deny", deny))
    return Rules(
        tuple(
            text if isinstance(text, Rule) else parse_rule(text, verdict, source)
            for verdict, texts in layers
            for text in texts
        )
    )


def exact_shell_rule(command: str, source: str = "the task's check") -> Rule:
    """A rule that allows one command line that a person gave, and each of its parts, and nothing else."""
    return Rule("allow", f"shell({command})", source, "shell", command, verbatim=True)


def suggest_for_command(command: SimpleCommand, script: Script) -> str:
    """A rule that would allow `command`: word by word where its words are known, else the line as it is."""
    words = [_quoted(word) for word in command.words]
    if None in words or command.doubts:
        return f"shell({script.text.strip()})"
    return f"shell({' '.join(word for word in words if word is not None)})"


def _quoted(word: Word) -> str | None:
    if word.glob is not None:
        return word.source
    return None if word.value is None else shlex.quote(word.value)


def _fits_path(rule: Rule, place: Place, workspace: Path) -> bool:
    if rule.verdict != "allow":
        return rule.path is None or rule.path.touches(place, workspace)
    if rule.is_about_everything:
        return True
    if rule.path is None:
        return place.inside and not place.secret
    if place.secret and not rule.path.names_files:
        return False
    return rule.path.allows(place, workspace)


def _strictest(rules: Iterable[Rule]) -> Rule | None:
    return min(rules, key=lambda rule: _ORDER.index(rule.verdict), default=None)
