"""A small repository for each bundled skill, what is asked for there, and how a program judges the result."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_TEST_SECONDS = 120.0
_LONGEST_SUBJECT = 60
_PATH = re.compile(r"[\w./-]*\w\.(?:py|md|toml|txt|cfg|json|js|ts|yml|yaml)\b")
_ORDER = re.compile(r"(?:[a-z]+(?:\([\w-]+\))?!?: )?[A-Za-z][a-z]+ \S")
_NO_ORDER = re.compile(
    r"(?:[a-z]+(?:\([\w-]+\))?!?: )?(?:\w+(?:ed|ing)|the|this|a|commit|staged|change|changes)\b", re.I
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What one run left: `answer` is its closing text, `calls` the calls that worked, in their order.

    `variables` is the environment that the run had, `touched` what git sees changed since it began.
    """

    folder: Path
    answer: str
    calls: Sequence[tuple[str, Mapping[str, Any]]]
    diffs: Sequence[str]
    touched: Sequence[str]
    variables: Mapping[str, str]

    @property
    def commands(self) -> list[str]:
        return [str(arguments.get("command", "")) for tool, arguments in self.calls if tool == "shell"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """`files` are committed, `changes` lie on top of them and are `staged` or not.

    `judge` gives what is missing in the result, "" for nothing. `allow` are permission rules, `settings`
    variables of the environment.
    """

    skill: str
    asks: str
    files: Mapping[str, str]
    judge: Callable[[Done], str]
    changes: Mapping[str, str] = field(default_factory=dict)
    staged: bool = False
    allow: Sequence[str] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


def lay_out(case: Case, folder: Path) -> None:
    """Makes the repository of a case in `folder`, which must not be there yet."""
    folder.mkdir(parents=True)
    write_files(case.files, folder)
    person = ("-c", "user.name=A Person", "-c", "user.email=person@example.org")
    for arguments in (
        ["init", "-q", "-b", "main"],
        ["add", "-A"],
        [*person, "commit", "-q", "-m", "Add the sources"],
    ):
        subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)
    write_files(case.changes, folder)
    if case.staged:
        subprocess.run(["git", "add", "-A"], cwd=folder, check=True, capture_output=True)


def write_files(files: Mapping[str, str], folder: Path) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def _commit_message(done: Done) -> str:
    if done.touched:
        return f"it changed {', '.join(done.touched)}"
    subject = done.answer.strip().strip("`").strip().partition("\n")[0].strip("`\"'* ")
    if not subject:
        return "no answer"
    if len(subject) > _LONGEST_SUBJECT:
        return f"a first line of {len(subject)} characters"
    if not _ORDER.match(subject) or _NO_ORDER.match(subject) or subject.endswith("."):
        return f"no order: {subject}"
    if not re.search(
        r"discount|negative|price|percent|validat|check|reject|rais|valueerror", done.answer, re.I
    ):
        return f"it does not say what was changed: {subject}"
    return ""


def _review(done: Done) -> str:
    if done.touched:
        return f"it changed {', '.join(done.touched)}"
    if not re.search(r"average|figures\.py", done.answer):
        return "it does not name the place"
    if not re.search(r"empty|zero|no (?:values|elements|items)|len\(\w+\) (?:is|==) 0", done.answer, re.I):
        return "it does not see that an empty list fails now"
    return ""


def _explanation(done: Done) -> str:
    if done.touched:
        return f"it changed {', '.join(done.touched)}"
    named = {path.removeprefix("./") for path in _PATH.findall(done.answer)}
    files = [path for path in done.folder.rglob("*") if path.is_file() and ".git" not in path.parts]
    # What the sources speak of, such as the file that keeps the notes, is not made up either.
    known = "\n".join([*(path.as_posix() for path in files), *(path.read_text("utf-8") for path in files)])
    invented = sorted(path for path in named if path not in known)
    if invented:
        return f"it names what is not there: {', '.join(invented[:3])}"
    sources = {"notes/main.py", "notes/store.py", "notes/search.py"}
    seen = {source for source in sources if source in named or source.rpartition("/")[2] in named}
    if len(seen) < 2:
        return f"it names {len(seen)} of {len(sources)} sources"
    if not re.search(r"\bnotes?\b", done.answer, re.I) or not re.search(r"search|find", done.answer, re.I):
        return "it does not say what the program does"
    return ""


def _tests_first(done: Done) -> str:
    test = done.folder / "test_names.py"
    text = test.read_text("utf-8") if test.is_file() else ""
    if _TESTS_OF_NAMES.strip() not in text:
        return "the tests that were there are gone"
    if "initials" not in text.replace(_TESTS_OF_NAMES.strip(), ""):
        return "no test of the new function"
    if done.diffs and done.diffs[0] != "test_names.py":
        return f"{done.diffs[0]} was written first"
    if not _passes(done.folder, "test_names.py"):
        return "the tests do not pass"
    if not _passes(done.folder, "-c", _HIDDEN_TEST, module=""):
        return "the new function is wrong"
    sources = done.folder / "names.py"
    written = sources.read_text("utf-8")
    sources.write_text(f"{_NAMES}\n\ndef initials(name):\n    return None\n", "utf-8")
    without = _passes(done.folder, "test_names.py")
    sources.write_text(written, "utf-8")
    return "the tests pass without the function as well" if without else ""


def _faster(done: Done) -> str:
    folder = Path(done.variables["AGENT_CONFIG_HOME"])
    made = [path for path in folder.rglob("*.toml") if path.name != "config.toml"]
    if not any("agent bench" in command for command in done.commands):
        return "it measured nothing"
    if not made:
        return "it tried no other setting"
    try:
        values = [tomllib.loads(path.read_text("utf-8")) for path in made]
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return "the new profile cannot be read"
    if not all(values) or not re.search(r"\d\s*tok", done.answer):
        return "it reports no speeds"
    return ""


def _added(done: Done) -> str:
    command = [sys.executable, "-m", "agent", "mcp", "test", "time"]
    tried = subprocess.run(
        command, cwd=done.folder, env=done.variables, capture_output=True, check=False, timeout=_TEST_SECONDS
    )
    return "" if tried.returncode == 0 else "no server named time answers"


def _passes(folder: Path, *arguments: str, module: str = "pytest") -> bool:
    command = [
        sys.executable,
        "-B",
        *(("-m", module, "-q", "-x", "-p", "no:cacheprovider") if module else ()),
    ]
    try:
        done = subprocess.run(
            [*command, *arguments], cwd=folder, capture_output=True, timeout=_TEST_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


_PRICES = '''"""Prices in cents."""


def discounted(price: int, percent: int) -> int:
    """The price less so many percent of it."""
    return price - price * percent // 100
'''
_CHECKED_PRICES = _PRICES.replace(
    "    return",
    "    if not 0 <= percent <= 100:\n"
    '        raise ValueError(f"a discount is between 0 and 100 percent, not {percent}")\n'
    "    return",
)
_FIGURES = '''"""Figures about measurements."""


def average(values: list[float]) -> float:
    """The mean of the values, 0.0 where there are none."""
    if not values:
        return 0.0
    return sum(values) / len(values)


def spread(values: list[float]) -> float:
    """How far the values are apart, 0.0 where there are none."""
    return max(values) - min(values) if values else 0.0
'''
_REPORT = '''from figures import average, spread


def line(name: str, values: list[float]) -> str:
    """One line of the report; a sensor that was off has no values."""
    return f"{name}: {average(values):.1f} (spread {spread(values):.1f})"
'''
_NAMES = '''"""Names of people."""


def surname(name: str) -> str:
    """The last word of a name."""
    words = name.split()
    return words[-1] if words else ""
'''
_TESTS_OF_NAMES = """from names import surname


def test_surname_is_the_last_word():
    assert surname("Ada King Lovelace") == "Lovelace"


def test_nobody_has_no_surname():
    assert surname("") == ""
"""
_HIDDEN_TEST = (
    "from names import initials as i; assert i('ada lovelace') == 'AL' and i('') == '' and i('Grace') == 'G'"
)
_NOTES = {
    "README.md": "# notes\n\nKeeps short notes in a file and finds them: `python -m notes.main add bread`\n",
    "pyproject.toml": '[project]\nname = "notes"\nversion = "1.0"\nscripts = { notes = "notes.main:main" }\n',
    "notes/__init__.py": "",
    "notes/main.py": '''"""The command: `notes add TEXT` and `notes find WORD`."""

import sys

from notes.search import matching
from notes.store import Store


def main() -> None:
    action, *words = sys.argv[1:]
    store = Store("notes.txt")
    if action == "add":
        store.add(" ".join(words))
    elif action == "find":
        print("\\n".join(matching(store.all(), words[0])))
''',
    "notes/store.py": '''"""Notes in a file, one in each line."""

from pathlib import Path


class Store:
    def __init__(self, path: str) -> None:
        self.path = Path(path)

    def add(self, text: str) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(text + "\\n")

    def all(self) -> list[str]:
        return self.path.read_text("utf-8").splitlines() if self.path.exists() else []
''',
    "notes/search.py": '''"""Finding notes."""


def matching(notes: list[str], word: str) -> list[str]:
    """The notes that hold a word, whatever its case, newest first."""
    return [note for note in reversed(notes) if word.lower() in note.lower()]
''',
    "tests/test_search.py": """from notes.search import matching


def test_newest_note_comes_first():
    assert matching(["old bread", "new bread"], "bread") == ["new bread", "old bread"]
""",
}
_OF_THE_PROGRAM = {"AGENT_SANDBOX_MODE": "off", "AGENT_LIMITS_SHELL_SECONDS": "900"}

CASES = (
    Case(
        skill="write-a-commit-message",
        asks="",
        files={"prices.py": _PRICES},
        changes={"prices.py": _CHECKED_PRICES},
        staged=True,
        judge=_commit_message,
    ),
    Case(
        skill="review-a-diff",
        asks="",
        files={"figures.py": _FIGURES, "report.py": _REPORT},
        changes={"figures.py": _FIGURES.replace("    if not values:\n        return 0.0\n", "")},
        judge=_review,
    ),
    Case(
        skill="explain-a-repository",
        asks="What is this, and which files has it got?",
        files=_NOTES,
        judge=_explanation,
    ),
    Case(
        skill="write-tests-first",
        asks="names.py needs a function initials(name): initials('ada lovelace') is 'AL', "
        "initials('') is ''. Tests are in test_names.py and run with `python -m pytest -q`.",
        files={"names.py": _NAMES, "test_names.py": _TESTS_OF_NAMES},
        judge=_tests_first,
    ),
    Case(
        skill="add-an-mcp-server",
        asks="Its name is time, it is started with `python -m mcp_server_time`, and yes, add it.",
        files={"README.md": "# Clocks\n"},
        judge=_added,
        allow=("shell(agent mcp *)", "shell(command -v *)"),
        settings=_OF_THE_PROGRAM,
    ),
    Case(
        skill="speed-up-a-server-profile",
        asks="The profile is embedded-small. Try one other setting in a copy named faster.",
        files={"README.md": "# Clocks\n"},
        judge=_faster,
        allow=("shell(agent *)",),
        settings=_OF_THE_PROGRAM,
    ),
)


def case_named(skill: str) -> Case:
    return next(case for case in CASES if case.skill == skill)


def need_git() -> None:
    """Raises SystemExit: git is not there."""
    if shutil.which("git") is None:
        raise SystemExit("git is needed")
