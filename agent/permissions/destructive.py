"""What mode `auto` still asks about: commands that destroy work, leave the machine or raise rights."""

import os
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from agent.permissions.options import NotUnderstoodError
from agent.permissions.words import Word, names
from agent.permissions.wrappers import git_global_options

_MOST_LOOKED_AT = 2_000
_NO_WORK_IN = frozenset({"node_modules", ".venv", "venv"})
_REASONS = {
    "it changes rights": "sudo doas su runuser pkexec chroot unshare nsenter",
    "it works on whole disks or destroys files for good": (
        "dd fdisk sfdisk parted wipefs shred mkswap mount umount losetup cryptsetup"
    ),
    "it changes the machine": (
        "shutdown reboot halt poweroff init telinit systemctl service launchctl sysctl modprobe insmod rmmod"
        " iptables nft ip ifconfig crontab at batch useradd userdel usermod passwd chsh visudo hostname"
        " hostnamectl loginctl"
    ),
    "it ends processes": "kill killall pkill skill xkill fuser",
    "it installs on the machine": ("apt apt-get dpkg dnf yum rpm pacman apk zypper brew snap flatpak port"),
    "it reaches other machines": (
        "ssh scp sftp rsync nc ncat netcat socat telnet ftp lftp mail sendmail mutt gh glab hub twine docker"
        " podman kubectl helm terraform aws gcloud az vercel netlify heroku fly flyctl wrangler"
    ),
    "what it starts can outlive the run": "disown tmux screen daemonize",
    "it shows or makes secrets": "printenv security secret-tool pass gpg ssh-add ssh-keygen",
    "it can change what the agent itself may do": "agent dflash-agent",
    "it changes what later commands mean": "alias trap source .",
}
_ALWAYS = {program: reason for reason, programs in _REASONS.items() for program in programs.split()}
_GIT_ALWAYS = names(
    "push clean restore filter-branch filter-repo update-ref config difftool mergetool bisect"
    " send-email request-pull instaweb daemon gc prune fsck svn p4 credential symbolic-ref replace"
    " send-pack http-push upload-pack receive-pack shell hook maintenance sparse-checkout read-tree"
    " checkout-index remote-ext remote fetch-pack archive"
)
_GIT_WITH: dict[str, frozenset[str]] = {
    "reset": frozenset({"--hard", "--merge", "--keep"}),
    "checkout": frozenset({"--", ".", "-f", "--force", "-B", "--ours", "--theirs"}),
    "switch": frozenset({"-f", "--force", "--discard-changes", "-C"}),
    "stash": frozenset({"drop", "clear", "pop"}),
    "branch": frozenset({"-D", "-d", "--delete", "-f", "--force", "-M", "-m"}),
    "tag": frozenset({"-d", "--delete", "-f", "--force"}),
    "reflog": frozenset({"expire", "delete"}),
    "rebase": frozenset({"-x", "--exec", "-i", "--interactive"}),
    "worktree": frozenset({"remove", "prune", "move", "add"}),
    "submodule": frozenset({"foreach", "deinit", "update", "add"}),
    "rm": frozenset({"-r", "-f", "-rf", "-fr"}),
    "fetch": frozenset({"-f", "--force", "--prune", "-p"}),
    "commit": frozenset({"--amend"}),
}
_PUBLISH = {
    "npm": names("publish unpublish deprecate owner access token login adduser dist-tag"),
    "yarn": frozenset({"publish", "npm"}),
    "pnpm": frozenset({"publish"}),
    "cargo": frozenset({"publish", "yank", "owner", "login"}),
    "uv": frozenset({"publish"}),
    "poetry": frozenset({"publish"}),
    "hatch": frozenset({"publish"}),
    "flit": frozenset({"publish"}),
    "gem": frozenset({"push", "yank", "owner"}),
    "mvn": frozenset({"deploy"}),
}
_UPLOADS = re.compile(
    r"-[A-Za-z]*[dFTXKOuoJ].*|--(data.*|json|form.*|upload-file|request|post-.*|body-.*|method|config|user|netrc.*|cookie.*|header)(=.*)?"
)


def objection(words: Sequence[Word], folders: Sequence[Path] = ()) -> str | None:
    """Why a command should not run without a person, or None.

    Whether the files that it names stay in the workspace is judged elsewhere. `folders` are those that it may
    run in.
    """
    name = (words[0].literal or "").rsplit("/", 1)[-1]
    texts = [word.literal for word in words[1:]]
    if name in _ALWAYS:
        return _ALWAYS[name]
    if name.startswith("mkfs"):
        return "it works on whole disks"
    if name in _PUBLISH and _PUBLISH[name] & set(texts):
        return "it publishes to others"
    if name == "git":
        return _git(words, folders)
    if name == "rm":
        return _rm(words, folders)
    if name.startswith("python") and ("-m", "agent") in pairwise(texts):
        return _ALWAYS["agent"]
    check = _CHECKS.get(name)
    return check(words) if check else None


def _rm(words: Sequence[Word], folders: Sequence[Path]) -> str | None:
    if not any(re.fullmatch(r"-[A-Za-z]*[rR].*|--r.*", word.literal or "") for word in words[1:]):
        return None
    for word in words[1:]:
        text = word.value or ""
        if word.literal is None and (word.glob is None or text.strip("./").startswith("*")):
            return "it removes folders that are only known when it runs"
        if any(_has_repository(place) for folder in folders for place in _meant(folder, word)):
            return "it removes a repository with its history, which undo cannot bring back"
    return None


def _meant(folder: Path, word: Word) -> Iterable[Path]:
    if word.literal is not None:
        return (folder / word.literal,) if word.literal else ()
    return folder.glob(word.glob or "") if not (word.glob or "/").startswith("/") else ()


def _has_repository(place: Path) -> bool:
    """Whether a git repository of its own lies in a folder, as far as a quick look shows."""
    if place.is_symlink():
        return False
    for number, (_, inner, files) in enumerate(os.walk(place)):
        if ".git" in inner or ".git" in files or number >= _MOST_LOOKED_AT:
            return number < _MOST_LOOKED_AT
        inner[:] = [name for name in inner if name not in _NO_WORK_IN]
    return False


def _git(words: Sequence[Word], folders: Sequence[Path]) -> str | None:
    try:
        _, rest = git_global_options(tuple(words))
    except NotUnderstoodError:
        return "its options are not understood"
    if not rest:
        return None
    name, texts = rest[0].literal or "", {word.literal for word in rest[1:]}
    if name in _GIT_ALWAYS or _has_any(texts, _GIT_WITH.get(name, frozenset())):
        return f"git {name} can lose work, reach others or run programs"
    if name == "checkout" and _checks_out_files(rest, folders):
        return "git checkout of files loses what is not committed"
    if any(
        text and re.match(r"--(upload-pack|receive-pack|exec|template|ext-diff|output)", text)
        for text in texts
    ):
        return f"git {name} runs programs with these options"
    if name in {"clone", "pull", "fetch", "ls-remote"} and any(text and "::" in text for text in texts):
        return "it may start a program as a transport"
    return None


def _has_any(texts: Iterable[str | None], wanted: frozenset[str]) -> bool:
    """Whether one of the words is there, options also among other letters (`-qf`) and cut short (`--har`)."""
    letters = {option[1] for option in wanted if re.fullmatch(r"-[A-Za-z]", option)}
    for text in texts:
        if text in wanted:
            return True
        if re.match(r"--[a-z]{2}", text or ""):
            start = (text or "").partition("=")[0]
            if any(option.startswith(start) for option in wanted):
                return True
        elif re.match(r"-[A-Za-z]", text or "") and letters & set(text or ""):
            return True
    return False


def _checks_out_files(words: Sequence[Word], folders: Sequence[Path]) -> bool:
    """`git checkout FILE` and `git checkout COMMIT FILE` lose what is not committed, as `restore` does."""
    texts = [word.literal or word.value or "" for word in words[1:]]
    if any(re.match(r"-[a-z]*[bt]|--(orphan|track)", text) for text in texts):
        return False
    named = [text for text in texts if not text.startswith("-")]
    files = any(os.path.lexists(folder / text) for folder in folders for text in named)
    return files or len(named) > 1 or any(word.glob is not None for word in words[1:])


def _recursive_change(words: Sequence[Word]) -> str | None:
    if any(re.fullmatch(r"-[A-Za-z]*R.*|--recursive", word.literal or "") for word in words[1:]):
        return "it changes whole folders"
    return None


def _variables(words: Sequence[Word]) -> str | None:
    """`env`, `export -p` and their like, with nothing to start or to set."""
    shows = all(re.fullmatch(r"-[0pxfF]+|--null", word.literal or "") for word in words[1:])
    return "it shows secrets that variables hold" if shows else None


def _download(words: Sequence[Word]) -> str | None:
    if any(_UPLOADS.fullmatch(word.literal or "") for word in words[1:]):
        return "it sends data or writes files"
    return None


def _find(words: Sequence[Word]) -> str | None:
    if any((word.literal or "").startswith(("-delete", "-fprint", "-fls", "-ok")) for word in words[1:]):
        return "it deletes or writes files"
    return None


_CHECKS: dict[str, Callable[[Sequence[Word]], str | None]] = {
    **dict.fromkeys(("env", "export", "declare", "typeset", "set"), _variables),
    "chmod": _recursive_change,
    "chown": _recursive_change,
    "chgrp": _recursive_change,
    "curl": _download,
    "wget": _download,
    "find": _find,
}
