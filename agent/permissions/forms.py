"""Other ways to write a command, so that a deny rule is not avoided by a detour."""

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
_SYSTEM_FOLDERS = ("/bin/", "/usr/bin/")


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
    if program in _LAUNCHERS:
        forms += [words[start:] for start in range(1, len(words))]
    return forms


def without_system_folder(word: Word) -> Word:
    """`/usr/bin/ls` as `ls`; a program elsewhere keeps its path, as it may be anything."""
    text = word.literal or ""
    for folder in _SYSTEM_FOLDERS:
        name = text.removeprefix(folder)
        if name != text and name and "/" not in name:
            return Word(name, word.source)
    return word
