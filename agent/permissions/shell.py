"""Takes a shell command line apart into the simple commands that it runs.

tree-sitter's bash grammar does the reading, but it accepts more than bash does and in places reads a line
differently. Only constructs listed here are trusted, the blanks between them are checked, and anything else
becomes a doubt: the permission gate asks when there is one.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from agent.permissions.heredoc import HereDocument, read_heredoc
from agent.permissions.literals import WORD_TYPES, UnreadableError, source_of, word_from
from agent.permissions.syntax import (
    BLANKS,
    BLANKS_IN_LINE,
    CONTAINERS,
    CONTROL,
    HIDDEN_EXPANSION,
    NOTHING,
    PLAIN_ARITHMETIC,
    REDIRECTS,
    RESERVED,
    SAFE_EXPANSION,
    SAFE_TESTS,
    TEST_NODES,
    TEST_TOKENS,
    TOKENS,
)
from agent.permissions.words import Assignment, Redirection, Script, SimpleCommand, Word, plain_word
from agent.permissions.wrappers import unwrap

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_LENGTH = 20_000  # characters; a longer line is asked about instead of read
_MAX_DEPTH = 8  # of commands that start commands
_MAX_NESTING = 60  # of syntax nodes


def analyse(command: str) -> Script:
    """Reads a command line as bash would.

    Never raises: what cannot be read is named in the result's `doubts`.
    """
    findings = _Findings()
    findings.read(command, parent=None, depth=0)
    return Script(
        text=command,
        commands=tuple(findings.commands),
        redirections=tuple(findings.redirections),
        assignments=tuple(findings.assignments),
        doubts=tuple(dict.fromkeys(findings.doubts)),
        has_loop=findings.has_loop,
        has_function=findings.has_function,
    )


@lru_cache(maxsize=1)
def _parser() -> "Parser":
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


@dataclass
class _Findings:
    """What has been found so far, over all scripts nested in the line."""

    commands: list[SimpleCommand] = field(default_factory=list)
    redirections: list[Redirection] = field(default_factory=list)
    assignments: list[Assignment] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    has_loop: bool = False
    has_function: bool = False

    def read(self, text: str, parent: int | None, depth: int) -> None:
        if depth > _MAX_DEPTH:
            self.doubts.append("commands are nested too deeply")
            return
        if len(text) > MAX_LENGTH:
            self.doubts.append(f"the command is longer than {MAX_LENGTH} characters")
            return
        if CONTROL.search(text):
            self.doubts.append("there are control characters in the command")
        data = _bytes_of(text)
        root = _parser().parse(data).root_node
        if root.has_error:
            self.doubts.append("it cannot be parsed as a shell command")
        _Walker(self, data, parent, depth).whole(root)

    def add(self, words: tuple[Word, ...], stdin: str | None, parent: int | None, depth: int) -> None:
        """Lists a command and, when it only starts other ones, those too."""
        index = len(self.commands)
        if depth > _MAX_DEPTH:
            self.commands.append(SimpleCommand(words, parent, doubts=("commands are nested too deeply",)))
            return
        if words[0].source in RESERVED:
            self.doubts.append(f"the word {words[0].source} has a special meaning in the shell")
        opened = unwrap(words, stdin)
        inner_at = opened.inner_at if opened.inner or opened.scripts else None
        self.commands.append(SimpleCommand(words, parent, inner_at, opened.doubts))
        self.assignments += opened.assignments
        self.redirections += [Redirection("<", file, writes=False) for file in opened.reads]
        if opened.folder is not None:
            self.add((plain_word("cd"), opened.folder), None, index, depth + 1)
        for inner in opened.inner:
            self.add(inner, stdin, index, depth + 1)
        for script in opened.scripts:
            self.read(script, index, depth + 1)


def _bytes_of(text: str) -> bytes:
    """What the shell gets: a name that is no UTF-8 has its own bytes. No shell gets other lone surrogates."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


class _Walker:
    """Walks the syntax tree of one text and adds to the findings."""

    def __init__(self, findings: _Findings, data: bytes, parent: int | None, depth: int) -> None:
        self.findings = findings
        self.data = data
        self.parent = parent
        self.depth = depth
        self.nesting = 0

    def whole(self, root: "Node") -> None:
        first = root.children[0].start_byte if root.children else len(self.data)
        last = root.children[-1].end_byte if root.children else len(self.data)
        for start, end in ((0, first), (last, len(self.data))):
            self._check_gap(start, end, BLANKS)
        self.statement(root)

    def doubt(self, reason: str) -> None:
        self.findings.doubts.append(reason)

    def statement(self, node: "Node") -> None:
        self.nesting += 1
        if self.nesting > _MAX_NESTING:
            self.doubt("the command is nested too deeply")
        elif node.type in CONTAINERS:
            self._container(node)
        elif node.type in WORD_TYPES:
            self._word(node)
        else:
            handlers = {
                "command": self._command,
                "redirected_statement": self._redirected,
                "variable_assignment": self._assignment,
                "variable_assignments": self._assignments,
                "declaration_command": self._declaration,
                "unset_command": self._declaration,
                "test_command": self._test,
                "function_definition": self._function,
                "file_redirect": self._file_redirect,
                "comment": self._comment,
            }
            handlers.get(node.type, self._unexpected)(node)
        self.nesting -= 1

    def _unexpected(self, node: "Node") -> None:
        """Reports what can be found inside a construct that is not understood as a whole."""
        self.doubt(f"it uses a construct that is not understood: {_short(source_of(node))}")
        for child in node.named_children:
            self.statement(child)

    def _container(self, node: "Node") -> None:
        self._check_gaps(node, BLANKS)
        if node.type in {"for_statement", "while_statement"}:
            self.findings.has_loop = True
        if node.type == "command_substitution" and source_of(node).startswith("`"):
            self._check_backquotes(node)
        for child in node.children:
            if node.type == "for_statement" and child.type == "variable_name":
                self.findings.assignments.append(Assignment(source_of(child), None, exported=False))
            elif child.is_named:
                self.statement(child)
            elif child.type not in TOKENS:
                self.doubt(f"it uses {child.type} in a way that is not understood")

    def _check_backquotes(self, node: "Node") -> None:
        inside = source_of(node)[1:-1]
        if "\\" in inside or '"' in inside or "`" in inside:
            self.doubt("there are quotes or backslashes between backquotes")

    def _comment(self, node: "Node") -> None:
        before = self.data[: node.start_byte]
        if before and not re.search(rb"(^|[^\\])[ \t\n;]$", before):
            self.doubt("a comment sign is not where the shell would see a comment")

    def _command(self, node: "Node", stdin: str | None = None) -> None:
        self._check_gaps(node, BLANKS_IN_LINE)
        words: list[Word] = []
        assignments: list[Node] = []
        previous: Node | None = None
        for part in node.children:
            child = part.children[0] if part.type == "command_name" else part
            if previous is not None and child.type not in REDIRECTS and child.start_byte == previous.end_byte:
                self.doubt(f"words run together in {_short(source_of(node))}")
            previous = child
            if child.type in WORD_TYPES:
                words.append(self._word(child))
            elif child.type == "variable_assignment":
                assignments.append(child)
            elif child.type == "herestring_redirect":
                stdin = self._herestring(child)
            elif child.type == "file_redirect":
                self._file_redirect(child)
            else:
                self._unexpected(child)
        for child in assignments:
            self._assignment(child, exported=bool(words))
        if words:
            self.findings.add(tuple(words), stdin, self.parent, self.depth)

    def _word(self, node: "Node") -> Word:
        self._look_inside(node)
        try:
            return word_from(node)
        except UnreadableError as problem:
            self.doubt(f"its quoting is not understood: {_short(str(problem))}")
            return Word(None, source_of(node))

    def _look_inside(self, node: "Node") -> None:
        """Finds the commands that expanding a word runs."""
        if node.type in {"command_substitution", "process_substitution"}:
            self.statement(node)
            return
        if node.type == "expansion":
            self._check_expansion(node)
        elif node.type == "arithmetic_expansion" and not PLAIN_ARITHMETIC.fullmatch(source_of(node)):
            # a variable's text is evaluated again, and an index in it may run commands
            self.doubt("the value of an arithmetic expression is not known")
        elif node.type in {"extglob_pattern", "regex"} and HIDDEN_EXPANSION.search(source_of(node)):
            self.doubt(f"a pattern is not understood: {_short(source_of(node))}")
        for child in node.children:
            self._look_inside(child)

    def _check_expansion(self, node: "Node") -> None:
        self._check_gaps(node, NOTHING)
        for child in node.children:
            if child.type in WORD_TYPES - {"variable_name", "special_variable_name"}:
                if not child.children and HIDDEN_EXPANSION.search(source_of(child)):
                    self.doubt(f"an expansion is not understood: {_short(source_of(node))}")
            elif child.type not in SAFE_EXPANSION:
                self.doubt(f"an expansion is not understood: {_short(source_of(node))}")

    def _redirected(self, node: "Node") -> None:
        self._check_gaps(node, BLANKS_IN_LINE)
        documents = [self._heredoc(child) for child in node.children if child.type == "heredoc_redirect"]
        stdin = documents[0].text if len(documents) == 1 else None
        for child in node.children:
            if child.type == "command":
                self._command(child, stdin)
            elif child.type == "herestring_redirect":
                self._herestring(child)
            elif child.type != "heredoc_redirect":
                self.statement(child)

    def _heredoc(self, node: "Node") -> HereDocument:
        document = read_heredoc(node, self.data)
        start = [child for child in node.children if child.type == "heredoc_start"]
        line = [*start, *document.rest]
        for left, right in pairwise(line):
            self._check_gap(left.end_byte, right.start_byte, BLANKS_IN_LINE)
        line_end = self.data.find(b"\n", line[-1].end_byte) if line else -1
        self._check_gap(line[-1].end_byte if line else 0, max(line_end, 0), BLANKS_IN_LINE)
        self.findings.doubts += document.doubts
        for child in document.expansions:
            self._look_inside(child)
        for child in document.rest:
            if child.is_named:
                self.statement(child)
            if child.type in WORD_TYPES or (not child.is_named and child.type not in TOKENS):
                self.doubt(f"{_short(source_of(child))} after a here-document's start is not understood")
        return document

    def _herestring(self, node: "Node") -> str | None:
        self._check_gaps(node, BLANKS_IN_LINE)
        words = [self._word(child) for child in node.children if child.type in WORD_TYPES]
        if len(words) != 1 or len(node.children) > 3:
            self.doubt("a here-string is not understood")
            return None
        return words[0].value

    def _file_redirect(self, node: "Node") -> None:
        self._check_gaps(node, BLANKS_IN_LINE)
        operators = [child.type for child in node.children if not child.is_named]
        targets = [child for child in node.named_children if child.type != "file_descriptor"]
        if operators in ([">&-"], ["<&-"]) and not targets:
            return
        if (
            len(operators) != 1
            or len(targets) != 1
            or targets[0].type not in WORD_TYPES | {"process_substitution"}
        ):
            self.doubt(f"a redirection is not understood: {_short(source_of(node))}")
            for target in targets:
                self.statement(target)
            return
        operator, target = operators[0], self._word(targets[0])
        if operator in {">&", "<&"} and re.fullmatch(r"\d+-?|-", target.literal or ""):
            return
        if operator not in {"<", ">", ">>", ">|", "&>", "&>>", ">&"}:
            self.doubt(f"a redirection is not understood: {_short(source_of(node))}")
        self.findings.redirections.append(Redirection(operator, target, writes=operator != "<"))

    def _assignments(self, node: "Node") -> None:
        self._check_gaps(node, BLANKS_IN_LINE)
        for child in node.named_children:
            self.statement(child)

    def _assignment(self, node: "Node", exported: bool = False) -> None:
        self._check_gaps(node, NOTHING)
        name, value = node.children[0], None
        for child in node.children[1:]:
            if child.type in WORD_TYPES:
                value = self._word(child)
            elif child.is_named:
                self._unexpected(child)  # arrays: their indexes are evaluated
        if name.type != "variable_name":
            self._unexpected(name)
        if value is None and len(node.children) == 2:
            value = plain_word("")
        self.findings.assignments.append(Assignment(source_of(name), value, exported))

    def _declaration(self, node: "Node") -> None:
        self._check_gaps(node, BLANKS_IN_LINE)
        words = [plain_word(node.children[0].type)]
        for child in node.children[1:]:
            if child.type == "variable_assignment":
                self._assignment(child, exported=True)
                words.append(Word(None, source_of(child)))
            elif child.type in WORD_TYPES:
                words.append(self._word(child))
            else:
                self._unexpected(child)
        self.findings.add(tuple(words), None, self.parent, self.depth)

    def _function(self, node: "Node") -> None:
        self._check_gaps(node, BLANKS)
        self.findings.has_function = True
        for child in node.named_children:
            self.statement(child)

    def _test(self, node: "Node") -> None:
        self._check_gaps(node, BLANKS)
        if node.children[0].type == "[[":
            for child in node.children[1:-1]:
                self._condition(child)
            return
        self.findings.add(tuple(self._test_words(node)), None, self.parent, self.depth)

    def _condition(self, node: "Node") -> None:
        """Checks a part of `[[ ]]`: numeric comparisons and -v evaluate text as code, the rest does not."""
        if node.type in TEST_NODES:
            self._check_gaps(node, BLANKS)
            for child in node.children:
                self._condition(child)
        elif node.type == "test_operator":
            if source_of(node) not in SAFE_TESTS:
                self.doubt(f"the test {source_of(node)} may evaluate text as code")
        elif node.type in WORD_TYPES:
            self._word(node)
        elif node.is_named or node.type not in TEST_TOKENS:
            self._unexpected(node)

    def _test_words(self, node: "Node") -> list[Word]:
        words: list[Word] = []
        for child in node.children:
            if child.type in TEST_NODES:
                self._check_gaps(child, BLANKS_IN_LINE)
                words += self._test_words(child)
            elif child.type in WORD_TYPES:
                words.append(self._word(child))
            elif child.is_named:
                self._unexpected(child)
            else:
                words.append(plain_word(child.type))
        return words

    def _check_gaps(self, node: "Node", blanks: re.Pattern[bytes]) -> None:
        """Nothing but blanks may lie between the children, or the grammar has skipped something."""
        for left, right in pairwise(node.children):
            self._check_gap(left.end_byte, right.start_byte, blanks)

    def _check_gap(self, start: int, end: int, blanks: re.Pattern[bytes]) -> None:
        gap = self.data[start:end]
        if not blanks.fullmatch(gap) or (gap and not gap.replace(b"\\\n", b"")):
            self.doubt("the words of the command are not separated as the shell would separate them")


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
