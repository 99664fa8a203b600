"""Takes the `--help` of a llama-server apart, in the layouts of llama.cpp, its forks and ik_llama.cpp."""

import re
from dataclasses import dataclass

_LARGEST_INDENT = 12
"""Options begin at column 0 to 9, their descriptions at 34 or 40; examples within those are deeper still."""
_FLAG = re.compile(r"-{1,2}[A-Za-z][A-Za-z0-9._-]*(?:\([a-z]+\))?")
_LIST = re.compile(r"\b(?:types|allowed values|one of|values)\s*:\s*([\w.+-]+(?:\s*,\s*[\w.+-]+)+)", re.I)
_BULLET = re.compile(r"^-\s+([\w.+-]+)(?:\s+\([^)]*\))?\s*:", re.MULTILINE)
_ALTERNATIVES = re.compile(r"[\[{(<]?([\w.+-]+(?:[|,][\w.+-]+)+)[\]})>]?$")
_ONE_WORD = re.compile(r"[A-Z_]*(?:\[:.*\])?")
_KEYS = re.compile(r"keys\s*:\s*([\w.]+(?:\s*,\s*[\w.]+)+)", re.I)
_REPLACEMENT = re.compile(r"(?:removed|no longer)\W.*?(?:use|instead)\s+(.+)", re.I | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Option:
    """One option as the help shows it. `hint` stands for its value, empty where it takes none.

    `allowed` is what may be given where the help lists it, `replacement` what to use instead of an option
    that is only there to be refused (empty text: nothing), `stage_keys` the keys of `KIND[:key=value,...]`.
    """

    flags: tuple[str, ...]
    hint: str
    description: str

    @property
    def replacement(self) -> str | None:
        if "argument has been removed" not in self.description:
            return None
        found = _REPLACEMENT.search(self.description)
        return _line(found[1]) if found else ""

    @property
    def stage_keys(self) -> tuple[str, ...]:
        if "[:" not in self.hint:
            return ()
        keys = _KEYS.search(_joined(self.description))
        return _names(keys[1]) if keys else ("n_max",)

    @property
    def allowed(self) -> tuple[str, ...]:
        return _allowed(self.hint, self.description)


def options_in(text: str) -> list[Option]:
    """Every option that the text describes, in its order."""
    found: list[tuple[list[str], str, list[str]]] = []
    for line in text.splitlines():
        stripped = line.strip()
        indent = len(line) - len(line.lstrip())
        flags, hint, rest = _head(stripped) if indent <= _LARGEST_INDENT else ([], "", "")
        if flags:
            found.append((flags, hint, [rest]))
        elif found and indent > _LARGEST_INDENT:
            found[-1][2].append(stripped)
    return [Option(tuple(flags), hint, "\n".join(lines)) for flags, hint, lines in found]


def _head(line: str) -> tuple[list[str], str, str]:
    """Takes `-a, --all N   description` apart; no flags when the line begins with something else."""
    flags: list[str] = []
    hints: list[str] = []
    head, gap, description = _split_head(line)
    for part in re.split(r",\s*(?=-)", head):
        flag = _FLAG.match(part)
        if flag is None:
            return [], "", ""
        name = flag[0]
        flags += [name.partition("(")[0], name.replace("(", "").replace(")", "")] if "(" in name else [name]
        hints.append(part[flag.end() :].strip())
    return list(dict.fromkeys(flags)), next((hint for hint in hints if hint), ""), description if gap else ""


def _split_head(line: str) -> tuple[str, str, str]:
    """The description begins after two blanks, but those after `-a,` only line the long flags up."""
    for gap in re.finditer(r"\s{2,}", line):
        if not line[: gap.start()].endswith(",") and not line[gap.end() :].startswith("-"):
            return line[: gap.start()], gap[0], line[gap.end() :]
    return line, "", ""


def _allowed(hint: str, description: str) -> tuple[str, ...]:
    alternatives = _ALTERNATIVES.match(hint)
    if alternatives:
        names = tuple(re.split(r"[|,]", alternatives[1]))
        # Placeholders are numbers, capitals or numbered: <0|1>, TYPE,N, dev1,dev2,..
        if not (names[0].isdecimal() or names[0].isupper() or re.fullmatch(r"[A-Za-z]+\d", names[0])):
            return names
    # Only one plain word stands for one value of a list: KEY=TYPE:VALUE has types too, of something else.
    if not _ONE_WORD.fullmatch(hint):
        return ()
    listed = _LIST.search(_joined(description))
    names = _names(listed[1]) if listed else tuple(_BULLET.findall(description))
    # Numbers are examples: a level of 5 may be taken where 0 to 4 are explained.
    return () if any(name.isdecimal() for name in names) else names


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _joined(description: str) -> str:
    """A list that was broken over lines is whole again; other lines stay apart."""
    return re.sub(r",\s*\n\s*", ", ", description)


def _line(text: str) -> str:
    return " ".join(text.split()).partition(" (env:")[0].strip()
