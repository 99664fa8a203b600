"""git subcommands that only read, with the options that keep them so.

Options that start programs (`--ext-diff`, `--textconv`, `-O` of grep, `--upload-pack`) or write files
(`--output`) are left out, and so is everything else that is not named here.
"""

import posixpath
import re
from collections.abc import Sequence

from agent.permissions.options import NotUnderstoodError, Options, options, parse
from agent.permissions.words import Word, plain_word

_DIFF_FLAGS = (
    "abbrev base binary cached cc check color color-moved color-words compact-summary dirstat exit-code"
    " unified find-copies find-renames full-index function-context histogram ignore-all-space"
    " ignore-blank-lines ignore-space-at-eol ignore-space-change ignore-submodules irreversible-delete"
    " merge-base minimal name-only name-status no-color no-color-moved no-ext-diff no-patch no-prefix"
    " no-renames no-textconv numstat ours patch patch-with-raw patch-with-stat patience pickaxe-all"
    " pickaxe-regex quiet raw relative shortstat staged stat submodule summary text theirs word-diff"
)
_DIFF_VALUES = "diff-algorithm diff-filter dst-prefix inter-hunk-context src-prefix"
_LOG_FLAGS = (
    "abbrev-commit all all-match author-date-order boundary branches cherry-mark cherry-pick children"
    " format pretty date-order decorate extended-regexp first-parent fixed-strings follow full-history graph"
    " invert-grep left-right log-size merges no-abbrev-commit no-decorate no-follow no-merges no-walk"
    " oneline parents perl-regexp regexp-ignore-case relative-date remotes reverse show-pulls"
    " simplify-by-decoration source tags topo-order"
)
_LOG_VALUES = (
    "after author before committer date decorate-refs decorate-refs-exclude encoding grep"
    " max-count since skip until"
)
_DIFF = options("puRabwWzsBMCDU", "SGl", _DIFF_FLAGS, _DIFF_VALUES, numbers=True)
_LOG = options(
    "puRabwWzscmtiEFPBMCDU",
    "SGLn",
    f"{_DIFF_FLAGS} {_LOG_FLAGS}",
    f"{_DIFF_VALUES} {_LOG_VALUES}",
    numbers=True,
)
_DIFF_TREE = options("puRabwWzsrtmcMCBU", "SG", f"{_DIFF_FLAGS} no-commit-id root stdin", _DIFF_VALUES)
_REV_LIST = options("n", "", f"{_LOG_FLAGS} count objects", _LOG_VALUES, numbers=True)
GIT_COMMANDS: dict[str, Options] = {
    "blame": options(
        flags="bcflnpsteMCw",
        values="L",
        long_flags="abbrev line-porcelain porcelain root show-email show-name show-number",
        long_values="date",
    ),
    "branch": options(
        flags="arvl",
        long_flags="abbrev all color ignore-case list no-color no-column remotes show-current verbose",
        long_values="contains format merged no-contains no-merged points-at sort",
    ),
    "cat-file": options(flags="tsep", long_flags="batch-all-objects batch-check"),
    "check-ignore": options(flags="qvn", long_flags="no-index non-matching quiet verbose"),
    "describe": options(
        long_flags="abbrev all always contains dirty exact-match first-parent long tags",
        long_values="exclude match",
    ),
    "for-each-ref": options(long_values="contains count format merged no-contains no-merged points-at sort"),
    "grep": options(
        flags="aIiwvhHEGFPnlLzcpWqo",
        values="eABCm",
        long_flags=(
            "all-match and basic-regexp break cached color column count extended-regexp"
            " files-with-matches files-without-match fixed-strings full-name function-context"
            " heading ignore-case invert-match line-number name-only no-color not null"
            " only-matching or perl-regexp quiet recurse-submodules show-function text untracked"
            " word-regexp"
        ),
        long_values="after-context before-context context max-count max-depth threads",
        numbers=True,
    ),
    "ls-files": options(
        flags="zvtcdmoiskur",
        values="x",
        long_flags=(
            "abbrev cached deduplicate deleted directory eol error-unmatch exclude-standard full-name"
            " ignored killed modified no-empty-directory others stage unmerged"
        ),
        long_values="exclude",
    ),
    "ls-tree": options(
        flags="drtlz",
        long_flags="abbrev full-name full-tree long name-only name-status object-only",
        long_values="format",
    ),
    "merge-base": options(flags="a", long_flags="all fork-point independent is-ancestor octopus"),
    "name-rev": options(long_flags="all always name-only tags"),
    "rev-parse": options(
        flags="q",
        long_flags=(
            "abbrev-ref absolute-git-dir all branches git-common-dir git-dir is-bare-repository"
            " is-inside-git-dir is-inside-work-tree is-shallow-repository no-revs quiet remotes"
            " revs-only short show-cdup show-prefix show-toplevel symbolic symbolic-full-name tags"
            " verify"
        ),
    ),
    "shortlog": options(flags="nsec", long_flags="email format numbered summary", long_values="group"),
    "show-ref": options(flags="hdsq", long_flags="dereference hash head heads quiet tags verify abbrev"),
    "status": options(
        flags="sbvzunormal",
        long_flags=(
            "ahead-behind branch column ignore-submodules ignored long no-ahead-behind no-column"
            " no-renames porcelain renames short show-stash untracked-files verbose"
        ),
    ),
    "version": options(long_flags="build-options"),
    "diff": _DIFF,
    "diff-tree": _DIFF_TREE,
    "log": _LOG,
    "rev-list": _REV_LIST,
    "show": _LOG,
    "whatchanged": _LOG,
}
_LISTING: dict[str, tuple[tuple[str, ...], ...]] = {
    "stash": (("list",), ("show",), ("show", "-p"), ("show", "--stat")),
    "remote": ((), ("-v",), ("--verbose",)),
    "tag": ((), ("-l",), ("--list",), ("-n",)),
    "worktree": (("list",), ("list", "--porcelain")),
    "submodule": (("status",),),
    "reflog": ((), ("show",)),
    "config": (("user.name",), ("user.email",), ("--get", "user.name"), ("--get", "user.email")),
}


def read_only_git(arguments: Sequence[Word]) -> tuple[Word, ...]:
    """Judges the words after `git` as a command that only reads, and returns those that may be paths.

    Raises:
        NotUnderstoodError: it may do more than reading.
    """
    parsed = parse(
        arguments,
        options("P", "C", "no-pager no-optional-locks literal-pathspecs version no-replace-objects"),
        stop_at_operand=True,
    )
    folders = parsed.given.get("C", [])
    if "version" in parsed.given:
        return ()
    if not parsed.operands:
        raise NotUnderstoodError("there is no git subcommand")
    name, rest = parsed.operands[0].literal or "", parsed.operands[1:]
    if name in _LISTING:
        if tuple(word.literal for word in rest) not in _LISTING[name]:
            raise NotUnderstoodError(f"git {name} with these arguments may do more than reading")
        return tuple(folders)
    if name not in GIT_COMMANDS:
        raise NotUnderstoodError(f"git {name} is not in the list of git commands that only read")
    given = parse(rest, GIT_COMMANDS[name])
    operands = given.operands
    if name == "branch" and operands and "list" not in given.given:
        raise NotUnderstoodError("git branch with a name makes a branch")
    if name == "grep" and "e" not in given.given:
        operands = operands[1:]
    # a value counts as a path too, in case another version of git takes the option without one
    named = (*operands, *given.separate_values)
    paths = [part for word in named for part in _paths_in(word)]
    if GIT_COMMANDS[name] is _LOG:
        paths += [part for word in given.given.get("L", []) for part in _files_of_lines(word)]
    return (*folders, *paths, *_below_folders(folders, paths))


def _below_folders(folders: Sequence[Word], paths: Sequence[Word]) -> tuple[Word, ...]:
    """The paths as `git -C` takes them. Without the folder they may be meant as well: `REVISION:PATH` is."""
    folder = posixpath.join("", *(word.literal or "" for word in folders))
    return tuple(plain_word(posixpath.join(folder, word.literal or "")) for word in paths) if folder else ()


def _files_of_lines(word: Word) -> tuple[Word, ...]:
    """`-L1,5:FILE`, `-L:NAME:FILE` or `-L/TEXT/,+5:FILE`, where there may be more colons in each part."""
    parts = (word.literal or "").split(":")
    return tuple(plain_word(":".join(parts[start:])) for start in range(1, len(parts)) if parts[start])


def _paths_in(word: Word) -> tuple[Word, ...]:
    """A revision, a path, or `REVISION:PATH`."""
    text = word.literal or ""
    if re.match(r":(!|\^|\(exclude\))", text):
        return ()  # what it names is left out
    if ":" in text and not text.startswith(":"):
        return (plain_word(re.sub(r"^[^:]*:", "", text) or "."),)
    if text.startswith(":"):
        return (plain_word(re.sub(r"^:(\([^)]*\)|[!^/]|\d:)*:?", "", text) or "."),)
    return (word,)
