"""Decides about a shell command line: the strictest verdict about any of its parts."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from agent.core.errors import UsageError
from agent.core.tool import Access
from agent.permissions.below import Below
from agent.permissions.context import Circumstances, Finding, allowed, from_rule, judge_path, worst
from agent.permissions.destructive import objection
from agent.permissions.environment import is_dangerous, is_harmless, names_search_path
from agent.permissions.expand import expand_globs, path_candidates
from agent.permissions.folder_reads import folder_read, reads_a_pipe
from agent.permissions.folders import Folders, possible_folders
from agent.permissions.forms import SYSTEM_FOLDERS, other_forms, without_system_folder
from agent.permissions.named import WRITERS, NamedFiles, doubted_reading
from agent.permissions.options import NotUnderstoodError, options, parse
from agent.permissions.patterns import Match
from agent.permissions.readonly import read_only
from agent.permissions.repositories import folder_of_call, program_named_by, repository_of
from agent.permissions.rules import Rule, parse_rule, suggest_for_command
from agent.permissions.runners import check_runner
from agent.permissions.shell import analyse
from agent.permissions.words import Assignment, Redirection, Script, SimpleCommand, Word
from agent.permissions.wrappers import TRANSPARENT

_FILE_MAKERS = {
    "mkdir": options("pv", "m", "parents verbose", "mode"),
    "touch": options("acm", "", "no-create"),
    "tee": options("a", "", "append"),
}
ONLY_READS = "it only reads"
_FOREIGN_SETTINGS = "git may take its settings from a folder that is not the workspace's own"
_PLAIN_REASONS = frozenset({ONLY_READS, "it is a pipe"})


def judge_line(command: str, around: Circumstances) -> Finding:
    """Decides about a whole command line, as the shell tool gets it."""
    if not command.strip():
        return Finding("ask", "the command is empty", suggestion="shell")
    script = analyse(command)
    findings = _Line(script, around).findings()
    whole = around.rules.allowing_line(command)
    if whole is not None:
        findings = [_lifted(finding, whole, around) for finding in findings]
    decisive = worst(findings)
    if decisive.verdict == "allow":
        return _most_telling(findings or [decisive])
    if decisive.verdict == "deny":
        return decisive
    asked = [finding for finding in findings if finding.verdict == "ask"]
    if any(finding.rule is not None for finding in asked):
        return Finding("ask", decisive.reason, decisive.rule)
    suggestions = {finding.suggestion for finding in asked}
    suggestion = suggestions.pop() if len(suggestions) == 1 else f"shell({command.strip()})"
    return Finding("ask", decisive.reason, None, suggestion if _can_be_written(suggestion) else None)


def _lifted(finding: Finding, whole: Rule, around: Circumstances) -> Finding:
    """What is left of a question where a rule is word for word the line, or about every command."""
    if finding.verdict != "ask":
        return finding
    is_this_line = whole.argument is not None
    if finding.rule is not None:
        return from_rule(whole) if is_this_line and _is_doubt(finding) else finding
    doubted = doubted_reading(around) if finding.blind and not is_this_line else None
    return from_rule(doubted, uncertain=True) if doubted is not None else from_rule(whole)


def _can_be_written(suggestion: str | None) -> bool:
    """A line with an open quote, say, cannot be the text of a rule."""
    try:
        parse_rule(suggestion, "allow", "a suggestion")
    except UsageError:
        return False
    return True


def _is_doubt(finding: Finding) -> bool:
    """Whether it is only a deny or ask rule that may fit, not one that does."""
    return finding.reason.startswith("whether the ") and finding.reason.endswith(" fits is not known")


class _Line:
    """One command line under judgement."""

    def __init__(self, script: Script, around: Circumstances) -> None:
        self.script = script
        self.around = around
        self.line_rule = f"shell({script.text.strip()})"
        self.folders: Folders = possible_folders(script, around.workspace)
        self.writes_files = any(redirection.writes for redirection in script.redirections) or any(
            command.name in _FILE_MAKERS for command in script.commands
        )
        self.named = NamedFiles(around, self.folders.possible)
        self.given = [(rule, analyse(rule.argument or "")) for rule in around.rules.verbatim_rules()]
        self.rule_of: dict[int, Rule] = {}

    def findings(self) -> list[Finding]:
        findings = [self._command(index, command) for index, command in enumerate(self.script.commands)]
        findings += [self._redirection(redirection) for redirection in self.script.redirections]
        findings += [self._assignment(assignment) for assignment in self.script.assignments]
        findings += [self._doubt(doubt) for doubt in self.script.doubts]
        if self.script.has_function:
            findings.append(self._function())
        if self.folders.problem is not None:
            findings.append(self._ask(self.folders.problem, blind=True))
        return findings

    def _ask(self, reason: str, command: SimpleCommand | None = None, *, blind: bool = False) -> Finding:
        suggestion = self.line_rule if command is None else suggest_for_command(command, self.script)
        return Finding("ask", reason, suggestion=suggestion, blind=blind)

    def _doubt(self, doubt: str) -> Finding:
        if self.around.mode == "plan":
            return Finding("deny", f"plan mode only reads, and this may do more: {doubt}")
        rule = self.around.rules.restricts_commands()
        return from_rule(rule, uncertain=True) if rule is not None else self._ask(doubt, blind=True)

    def _function(self) -> Finding:
        reason = "it defines a function, which can stand for any command"
        return (
            Finding("deny", f"plan mode only reads: {reason}")
            if self.around.mode == "plan"
            else self._ask(reason)
        )

    def _command(self, index: int, command: SimpleCommand) -> Finding:
        found = self.around.rules.for_command(command, other_forms(command))
        if found is not None and found[0].verdict != "allow":
            rule, match = found
            if match is Match.YES or rule.verdict == "ask":
                return from_rule(rule, uncertain=match is Match.MAYBE)
            if self.around.mode != "plan":
                return from_rule(rule, uncertain=True)
        words = self._expanded(command)
        is_wrapper = command.inner_at is not None and command.name in TRANSPARENT
        reading, problem = _try_read_only(words)
        if self.around.mode == "plan" and (command.doubts or (reading is None and not is_wrapper)):
            return Finding("deny", f"plan mode only reads: {'; '.join(command.doubts) or problem}")
        rule = self._allowing_rule(index, command, found[0] if found is not None else None)
        if rule is not None:
            restricted = self.named.restricted(command, words, reading, given=rule.verbatim)
            return worst((from_rule(rule), *restricted, *self._below(words, by_secrets=False)))
        if command.doubts:
            return self._ask("; ".join(command.doubts), command)
        if is_wrapper:
            return allowed(f"{command.name} only starts the command after it")
        if reading is not None:
            below = worst(self._below(words)).suggesting(suggest_for_command(command, self.script))
            return worst((self._paths(command, reading, ONLY_READS), below))
        return self._changing(command, words, problem)

    def _below(self, words: Sequence[Word], *, by_secrets: bool = True) -> list[Finding]:
        """What is to be said about files of folders that a command reads as a whole."""
        read = folder_read(words)
        if read is None or (not read.roots and reads_a_pipe(words, self.script)):
            return []
        looks = [Below(read, folder, self.around) for folder in self.folders.possible]
        findings = [finding for look in looks for finding in look.by_rules()]
        if by_secrets:
            findings += [finding for look in looks for finding in look.by_secrets()]
        return findings

    def _allowing_rule(self, index: int, command: SimpleCommand, found: Rule | None) -> Rule | None:
        """The rule that allows the command, by itself or as a part of what another rule allows."""
        if found is None:
            found = next((rule for rule, given in self.given if _has_part(given, command)), None)
        if found is not None:
            pattern = found.command
            if pattern is None or len(pattern.words) > (command.inner_at or 0):
                self.rule_of[index] = found
            return found
        if command.parent is not None and command.parent in self.rule_of:
            self.rule_of[index] = self.rule_of[command.parent]
            return self.rule_of[index]
        return None

    def _changing(self, command: SimpleCommand, words: Sequence[Word], problem: str) -> Finding:
        """Judges a command that does more than reading."""
        if command.name in _FILE_MAKERS:
            return self._file_maker(command, words)
        try:
            arguments = check_runner(words)
        except NotUnderstoodError as why:
            is_runner, why_not = False, str(why)
        else:
            is_runner, why_not = True, ""
            if self.around.runners_are_allowed:
                return self._arguments(command, arguments, "it runs the project's tests or build", "read")
        if self.around.mode != "auto":
            listed = "is not in the list" in why_not
            return self._ask(
                problem if listed or is_runner or not why_not else _about(command.name, why_not), command
            )
        reason = objection(command.words, self.folders.possible)
        if reason is not None:
            return self._ask(f"{command.name}: {reason}", command)
        program = self._program_file(command)
        arguments = self._arguments(command, words[1:], "mode auto allows it", "read", "write")
        below = worst(self._below(words)).suggesting(suggest_for_command(command, self.script))
        named = self.named.restricted(command, words, None, given=False)
        return worst((program, arguments, *named, below))

    def _program_file(self, command: SimpleCommand) -> Finding:
        """A program that is named by its path has to be the system's or the workspace's."""
        name = command.name or ""
        if "/" not in name or Path(name).parent.as_posix() in SYSTEM_FOLDERS:
            return allowed("it is a program of the system")
        return worst(self._places(name, "read")).suggesting(suggest_for_command(command, self.script))

    def _file_maker(self, command: SimpleCommand, words: Sequence[Word]) -> Finding:
        try:
            paths = parse(words[1:], _FILE_MAKERS[command.name or ""]).operands
        except NotUnderstoodError as problem:
            return self._ask(str(problem), command)
        return self._paths(command, paths, "it makes files in the workspace", access="write")

    def _paths(
        self, command: SimpleCommand, paths: Iterable[Word], reason: str, access: Access = "read"
    ) -> Finding:
        """Judges words that are paths, in every folder that the command may run in."""
        findings = [allowed(reason)]
        for word in paths:
            if word.pipe:
                continue
            if word.literal is None:
                return self._ask(f"which files {word.source} stands for is only known when it runs", command)
            findings += self._places(word.literal, access)
        concern = self._git_concern(command) if command.name == "git" else ""
        if concern:
            findings.append(self._ask(concern))
        return worst(findings).suggesting(suggest_for_command(command, self.script))

    def _places(self, text: str, *accesses: Access) -> list[Finding]:
        return [
            judge_path(self.around.locate(text, folder), access, access, self.around)
            for folder in self.folders.possible
            for access in accesses
        ]

    def _arguments(
        self, command: SimpleCommand, words: Iterable[Word], reason: str, *accesses: Access
    ) -> Finding:
        """Judges words of which some may be paths."""
        findings = [allowed(reason)]
        for word in words:
            if word.pipe:
                continue
            if word.literal is None:
                return self._ask(f"what {word.source} becomes is only known when it runs", command)
            for text in path_candidates(word.literal):
                place = self.around.locate(text)
                if place.protected and command.name not in WRITERS:
                    findings.append(self._ask(f"{text} belongs to git or to the agent's own settings"))
                elif place.is_root and command.name in {"rm", "mv"}:
                    findings.append(self._ask("it removes or moves the workspace itself"))
                else:
                    findings += self._places(text, *accesses)
        return worst(findings).suggesting(suggest_for_command(command, self.script))

    def _redirection(self, redirection: Redirection) -> Finding:
        finding = self._target(redirection)
        if finding.verdict == "ask" and any(redirection in given.redirections for _, given in self.given):
            return allowed("it is part of a command that a person gave")
        return finding

    def _target(self, redirection: Redirection) -> Finding:
        if redirection.target.pipe:
            return allowed("it is a pipe")
        text, source = redirection.target.literal, redirection.target.source
        if text is None:
            if redirection.writes and self.around.mode == "plan":
                return Finding("deny", f"plan mode only reads, and this writes {source}")
            return self._ask(
                f"where the redirection to {source} leads is only known when it runs", blind=True
            )
        return worst(self._places(text, "write" if redirection.writes else "read"))

    def _assignment(self, assignment: Assignment) -> Finding:
        if any(assignment in given.assignments for _, given in self.given):
            return allowed("it is part of a command that a person gave")
        name = assignment.name
        if names_search_path(assignment):
            return self._search_path(assignment)
        if is_dangerous(assignment):
            rule = self.around.rules.restricts_commands()
            reason = f"setting {name} can change which programs run"
            return from_rule(rule, uncertain=True) if rule is not None else self._ask(reason)
        if self.around.mode == "auto" or is_harmless(assignment):
            return allowed(f"setting {name} is harmless")
        return self._ask(f"{name} is not in the list of variables that are harmless to set")

    def _search_path(self, assignment: Assignment) -> Finding:
        text = assignment.value.literal if assignment.value is not None else None
        if text is None:
            return self._ask(f"what {assignment.name} becomes is only known when it runs")
        findings = [finding for part in text.split(":") for finding in self._places(part or ".", "read")]
        return worst(findings).suggesting(self.line_rule)

    def _expanded(self, command: SimpleCommand) -> tuple[Word, ...]:
        first = without_system_folder(command.words[0])
        rest = command.words[1:]
        if not any(word.glob for word in rest):
            return (first, *rest)
        if self.writes_files:  # the line may make files that the wildcards then find
            return (first, *(Word(None, word.source, glob=word.glob) if word.glob else word for word in rest))
        return (first, *expand_globs(rest, self.folders.possible, self.around.workspace))

    def _git_concern(self, command: SimpleCommand) -> str:
        """Why git may start a program although it is only asked to read; empty where it does not.

        A folder with the files of a bare repository has settings of its own. Those of the workspace's own
        repository may have come with it as well; they make no difference where its tests may run.
        """
        root = self.around.workspace.resolve()
        for start in self.folders.possible:
            folder = folder_of_call([word.literal for word in command.words], start)
            if self.writes_files and folder != root:
                return _FOREIGN_SETTINGS
            found = repository_of(folder, root)
            if found is None:
                continue
            if found.name != ".git":
                return _FOREIGN_SETTINGS
            named = "" if self.around.runners_are_allowed else program_named_by(found)
            if named:
                return f"the settings of the repository may start a program: {named}"
        return ""


def _try_read_only(words: Sequence[Word]) -> tuple[tuple[Word, ...] | None, str]:
    """The paths that the command reads when it only reads, or None and why it does not."""
    if words[0].literal is None:
        return None, f"the program's name in {words[0].source} is only known when it runs"
    try:
        return read_only(words).paths, ""
    except NotUnderstoodError as problem:
        return None, _about(words[0].literal, str(problem))


def _about(name: str | None, reason: str) -> str:
    return reason if not name or reason.startswith((f"{name} ", "git ")) else f"{name}: {reason}"


def _most_telling(findings: Sequence[Finding]) -> Finding:
    """Of findings that all allow: a person's rule, else what does more than reading."""
    return max(findings, key=lambda finding: (finding.rule is not None, finding.reason not in _PLAIN_REASONS))


def _has_part(given: Script, command: SimpleCommand) -> bool:
    """Whether a person gave this very command, alone or as a part of a line."""
    if any(word.value is None for word in command.words):
        return False
    words = [(word.value, word.glob) for word in command.words]
    return any([(word.value, word.glob) for word in part.words] == words for part in given.commands)
