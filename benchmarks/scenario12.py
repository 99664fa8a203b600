"""The scripted session of twelve steps: a small repository with a failing function, and the replies."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

Protocol = Literal["native", "constrained"]

TEST_COMMAND = "python3 run_tests.py"
TASK = (
    "The function mean in calc/stats.py fails: `python3 run_tests.py` shows how. Mend it. Then add a module "
    "calc/spread.py with a function spread(numbers), the distance between the largest and the smallest of "
    "them, and describe both changes in CHANGES.md. The tests have to pass at the end."
)
STATS = '''"""Figures about lists of numbers."""


def total(numbers):
    """The sum of the numbers."""
    result = 0
    for number in numbers:
        result += number
    return result


def mean(numbers):
    """The average of the numbers, 0 for an empty list."""
    return total(numbers) / (len(numbers) - 1)
'''
TESTS = """from calc.stats import mean, total

assert total([1, 2, 3]) == 6, total([1, 2, 3])
assert mean([2, 4, 6]) == 4, mean([2, 4, 6])
assert mean([]) == 0, mean([])
print("all tests pass")
"""
WRONG = "    return total(numbers) / (len(numbers) - 1)"
HALF_RIGHT = "    return total(numbers) / len(numbers)"
RIGHT = "    return total(numbers) / len(numbers) if numbers else 0"
SPREAD = '''"""How far numbers lie apart."""


def spread(numbers):
    """The distance between the largest and the smallest number."""
    return max(numbers) - min(numbers)
'''
CHANGES = "- mean works, for an empty list too\n- new: spread\n"
ANSWER = "mean divides by the number of numbers and takes an empty list; spread and CHANGES.md are new."

FILES = {
    "calc/__init__.py": "",
    "calc/stats.py": STATS,
    "run_tests.py": TESTS,
    ".gitignore": "__pycache__/\n",
}
EXPECTED = {
    "calc/stats.py": STATS.replace(WRONG, RIGHT),
    "calc/spread.py": SPREAD,
    "CHANGES.md": CHANGES,
}
FILE_STEPS = (1, 2, 3, 4, 6, 8, 9, 10)
"""Steps, counted from 1, whose call looks at files or changes them."""
SHELL_STEPS = (5, 7, 11)
STEPS = 12


def script(protocol: Protocol) -> list[dict[str, Any]]:
    """The replies in the form of `tests.fakes.script`, as JSON-ready data."""
    return [
        _call("read", path="calc/stats.py"),
        _call("read", path="run_tests.py"),
        _call("search", pattern="mean"),
        _call("edit", path="calc/stats.py", old=WRONG, new=HALF_RIGHT),
        _call("shell", command=TEST_COMMAND),
        _call("edit", path="calc/stats.py", old=HALF_RIGHT, new=RIGHT),
        _call("shell", command=TEST_COMMAND),
        _call("write", path="calc/spread.py", content=SPREAD),
        _call("read", path="calc/spread.py"),
        _call("write", path="CHANGES.md", content=CHANGES),
        _call("shell", command=TEST_COMMAND),
        {"text": ANSWER} if protocol == "native" else _call("finish", answer=ANSWER),
    ]


def _call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def make_repository(folder: Path, environment: Mapping[str, str]) -> Path:
    """Writes the files and commits them. `environment` decides which git is run and with which settings."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    person = ("-c", "user.name=Bench", "-c", "user.email=bench@localhost")
    for arguments in (("init", "-q"), ("add", "."), (*person, "commit", "-q", "-m", "start")):
        subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True)
    return folder


def wrong_files(folder: Path) -> list[str]:
    """The files that do not have their final content."""
    return [
        name
        for name, text in EXPECTED.items()
        if not (folder / name).is_file() or (folder / name).read_text("utf-8") != text
    ]
