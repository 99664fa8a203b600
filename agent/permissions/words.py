"""What a shell command line is made of, as far as it is known before the shell runs it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command.

    `value` is the text that the program will get, or None when only the shell can know it; such a word may
    become any number of words. `source` is the word as it was typed. `glob` is set when unquoted wildcards
    make the word a file name pattern: the same text with quoted wildcards escaped. `pipe` marks a process
    substitution, which is a file name under /dev/fd.
    """

    value: str | None
    source: str
    glob: str | None = None
    pipe: bool = False

    @property
    def literal(self) -> str | None:
        """The text when it is surely this one word, else None."""
        return None if self.glob is not None else self.value


def names(text: str) -> frozenset[str]:
    """The words of `text` as a set; long lists are easier to read without quotes and commas."""
    return frozenset(text.split())


def plain_word(text: str) -> Word:
    return Word(text, text)


@dataclass(frozen=True, slots=True)
class Assignment:
    """A variable that the line sets. `exported`: programs of the line see it for certain."""

    name: str
    value: Word | None
    exported: bool


@dataclass(frozen=True, slots=True)
class Redirection:
    operator: str
    target: Word
    writes: bool


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """A program or builtin that the line starts.

    `parent` is the position in `Script.commands` of the command that starts this one (`timeout 5 ls` is
    listed before its `ls`). `inner_at` is the number of words before the started command's own. `doubts` say
    why the programs that this command starts cannot all be named.
    """

    words: tuple[Word, ...]
    parent: int | None = None
    inner_at: int | None = None
    doubts: tuple[str, ...] = ()

    @property
    def name(self) -> str | None:
        return self.words[0].literal if self.words else None

    @property
    def text(self) -> str:
        return " ".join(word.source for word in self.words)


@dataclass(frozen=True, slots=True)
class Script:
    """A command line taken apart. With `doubts` the list of commands may be incomplete."""

    text: str
    commands: tuple[SimpleCommand, ...]
    redirections: tuple[Redirection, ...]
    assignments: tuple[Assignment, ...]
    doubts: tuple[str, ...]
    has_loop: bool = False
    has_function: bool = False

    @property
    def is_unknown(self) -> bool:
        """Whether the line may start programs that are not in `commands`."""
        return bool(self.doubts) or any(command.doubts for command in self.commands)
