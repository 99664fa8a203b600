"""Other ways to write a command, so that a deny rule is not avoided by a detour."""

import re

from agent.permissions.options import NotUnderstoodError
from agent.permissions.words import SimpleCommand, Word, names, plain_word
from agent.permissions.wrappers import git_global_options

# programs that start what comes after their own options; unlike the wrappers they are not taken apart
_LAUNCHERS = names(
    "busybox toybox uv uvx poetry pipenv pdm hatch rye conda mamba pixi npx bunx pnpx npm pnpm yarn"
    " ionice chrt taskset strace ltrace gdb flock watch parallel unshare nsenter chroot su runuser"
    " sudo doas script unbuffer ssh docker podman kubectl systemd-run rlwrap firejail bwrap proot"
    " fakeroot xvfb-run valgrind perf rr hyperfine entr caffeinate direnv mise asdf nix coverage"
    " torchrun env xargs find"
)
_GIT_LAUNCHERS = names("bisect rebase submodule difftool filter-branch")
SYSTEM_FOLDERS = ("/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin")


def other_forms(command: SimpleCommand) -> list[tuple[Word, ...]]:
    """The command without its program's folder, git without global options, and what a launcher may start."""
    name = command.name
    if name is None:
        return []
    forms: list[tuple[Word, ...]] = []
    program = name.rsplit("/", 1)[-1]
    words = (plain_word(program), *command.words[1:])
    if program != name:
        forms.append(words)
    if program == "git":
        try:
            _, rest = git_global_options(words)
        except NotUnderstoodError:
            rest = words[1:]
        forms.append((words[0], *rest))
    if program in _LAUNCHERS or (program == "git" and any(word.value in _GIT_LAUNCHERS for word in words)):
        forms += [words[start:] for start in range(1, len(words))]
        forms += [form for word in words[1:] for form in _commands_in(word)]
    return forms


def _commands_in(word: Word) -> list[tuple[Word, ...]]:
    """A word with blanks, as after `-c`, roughly split into commands."""
    text = word.value or ""
    if not re.search(r"\s", text):
        return []
    parts = [re.findall(r"[^\s'\"`()]+", part) for part in re.split(r"[;&|\n]+", text)]
    return [tuple(map(plain_word, part)) for part in parts if part]


def without_system_folder(word: Word) -> Word:
    """`/usr/bin/ls` as `ls`; a program elsewhere keeps its path, as it may be anything."""
    text = word.literal or ""
    for folder in SYSTEM_FOLDERS:
        name = text.removeprefix(f"{folder}/")
        if name != text and name and "/" not in name:
            return Word(name, word.source)
    return word
