"""Makes random calls of programs that start others, with options that exist and options that do not."""

import random
import string

_LONG_OPTIONS = {
    "bash": "login norc noprofile posix restricted verbose rcfile init-file debugger noediting",
    "command": "",
    "env": "ignore-environment null unset chdir split-string block-signal default-signal debug argv0",
    "exec": "",
    "find": "",
    "nice": "adjustment",
    "nohup": "",
    "setsid": "ctty fork wait",
    "sh": "",
    "stdbuf": "input output error",
    "time": "portability output format",
    "timeout": "foreground kill-after preserve-status signal verbose",
    "xargs": "null arg-file delimiter eof replace max-lines max-args max-procs max-chars exit verbose",
}
_VALUES = ("1", "p1", "p2", "p3", "A=1", "-", "--", "0", "{}", "x", "5", "'p1 p2'", "KILL", "/")
_FIND_PARTS = ("-exec", "-execdir", "p1", "p2", "{}", "';'", "+", "\\;", "-o", "-name", "x", "!")
_ENDS = ("p1", "p2", "p3 p1", "p2 x", "-c 'p1'", "'p1; p2'")


def wrapper_line(source: random.Random) -> str:
    name = source.choice(sorted(_LONG_OPTIONS))
    words = [name, *(_option(source, name) for _ in range(source.randint(0, 4)))]
    if name == "find":
        words = ["find . -maxdepth 0 -exec", *source.choices(_FIND_PARTS, k=source.randint(2, 8))]
    words.append(source.choice(_ENDS))
    return source.choice(["", "echo p3 | ", "echo x | "]) + " ".join(words)


def _option(source: random.Random, name: str) -> str:
    kind = source.random()
    if kind < 0.4:
        letters = source.choices(string.ascii_letters + string.digits, k=source.choice([1, 1, 1, 2, 3]))
        return "-" + "".join(letters)
    known = _LONG_OPTIONS[name].split()
    if kind < 0.65 and known:
        option = source.choice(known)
        shortened = option[: source.randint(max(1, len(option) - 2), len(option))]
        return "--" + shortened + source.choice(["", "", f"={source.choice(_VALUES)}"])
    return source.choice(_VALUES)
