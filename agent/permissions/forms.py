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
    " torchrun env xargs find setpriv numactl bundle nix-shell pkexec sg gtimeout tsp start-stop-daemon"
    " dbus-run-session fd fdfind tmux screen ld.so ld-linux-x86-64.so.2 ld-linux-aarch64.so.1"
)
_GIT_LAUNCHERS = names("bisect rebase submodule difftool filter-branch")
SYSTEM_FOLDERS = ("/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin")


def other_forms(command: SimpleCommand) -> list[tuple[Word, ...]]:
    """The command without its program's folder, git without global options, and what a launcher may start."""
    name = command.name
    if name is None:
        return []
    program = name.rsplit("/", 1)[-1]
    words = (plain_word(program), *command.words[1:])
    forms = _plain_forms(command.words)
    if program in _LAUNCHERS or (program == "git" and any(word.value in _GIT_LAUNCHERS for word in words)):
        started = [words[start:] for start in range(1, len(words))]
        started += [form for word in words[1:] for form in _commands_in(word)]
        forms += [form for each in started for form in (each, *_plain_forms(each))]
    return forms


def _plain_forms(words: tuple[Word, ...]) -> list[tuple[Word, ...]]:
    """`/bin/rm x` as `rm x`, and git without its global options."""
    name = words[0].literal or ""
    program = name.rsplit("/", 1)[-1]
    plain = (plain_word(program), *words[1:])
    forms = [plain] if program != name else []
    if program == "git":
        try:
            _, rest = git_global_options(plain)
        except NotUnderstoodError:
            rest = plain[1:]
        forms.append((plain[0], *rest))
    return forms


def _commands_in(word: Word) -> list[tuple[Word, ...]]:
    """A word with blanks, as after `-c` or in `--exec=...`, roughly split into commands."""
    text = re.sub(r"^--[a-z-]+=", "", word.value or "")
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
