"""Prompts for the target: what people ask a coding assistant, in many variations.

The target's own answers to them are what the drafter learns from. The held-out prompts are written by hand
and share no template with the others; their functions come from modules that are not used for training.
"""

import inspect
import itertools
import json
import pkgutil
import random
import sys
from collections.abc import Iterator
from importlib import import_module

HELD_OUT = (
    "Write a Python module with a class TaskStore that adds, updates, deletes and searches tasks, and tests.",
    "Write a complete Python file with a key-value store class and a report of its keys, with five tests.",
    "Implement a doubly linked list in Python with append, prepend, delete, find and reverse.",
    "Write a Python function that parses a CSV line with quoted fields, without the csv module.",
    "Write a small command line calculator in Python with argparse.",
    "Here is a function:\n\ndef mean(xs):\n    return sum(xs) / len(xs)\n\nMake it raise ValueError for an empty list.",
    "Write a Python class for a bank account with deposit, withdraw and a history of transactions.",
    "Write a SQL query that lists the ten customers with the highest total of orders in 2024.",
    "Write a JavaScript function that removes duplicates from an array and keeps the order.",
    "Fix the bug:\n\ndef last(items):\n    return items[len(items)]\n",
    "Write a Python decorator that caches results for a number of seconds.",
    "Write a bash script that counts the lines of all Python files below the current folder.",
)

_LANGUAGES = (
    "Python",
    "Python",
    "Python",
    "Python",
    "JavaScript",
    "TypeScript",
    "Go",
    "Rust",
    "Java",
    "C",
    "Bash",
)
_VERBS = (
    "sorts", "filters", "groups", "counts", "validates", "parses", "formats", "merges", "splits", "reverses",
    "searches", "compresses", "converts", "normalises", "rotates", "samples", "indexes", "caches", "prints",
    "reads", "writes", "compares", "deduplicates", "flattens", "pads", "tokenises", "averages", "ranks",
)  # fmt: skip
_THINGS = (
    "a list of integers", "a list of strings", "a dictionary", "a binary tree", "a matrix", "a date", "a time range",
    "an e-mail address", "a JSON document", "an INI file", "a log file", "a URL", "an IP address", "a version number",
    "a queue of jobs", "a graph", "a set of intervals", "a table of rows", "a text in paragraphs", "a file path",
    "user records", "prices in cents", "temperatures", "a stack", "a heap", "a priority queue", "words by length",
    "a bit string", "roman numerals", "coordinates", "a shopping cart", "a deck of cards", "sensor readings",
)  # fmt: skip
_NOUNS = (
    "Inventory", "Library", "Playlist", "Matrix", "Stack", "Queue", "Graph", "Timer", "Logger", "Config", "Cache",
    "Parser", "Tokenizer", "Scheduler", "Counter", "Histogram", "Polynomial", "Fraction", "Vector", "Address book",
    "Event bus", "State machine", "Rate limiter", "Thread pool", "Calendar", "Ledger", "Router", "Registry", "Trie",
)  # fmt: skip
_EXTRAS = (
    "", "", "", " Add type hints.", " Add a docstring.", " Include two tests.", " Handle empty input.",
    " Raise ValueError for bad input.", " Use no library.", " Explain it briefly.", " Only show the code.",
)  # fmt: skip
_WORK = (
    "Add a docstring to this function:", "Add type hints to this function:", "Explain what this function does:",
    "Write three unit tests for this function:", "Rewrite this function so that it is easier to read:",
    "Give the complete function again with better variable names:", "Find a possible bug in this function:",
)  # fmt: skip
_PROSE = (
    "Explain how {} works to a beginner.", "What is {} used for?", "Compare {} with its alternatives.",
    "Write a short article about {}.",
)  # fmt: skip
_SUBJECTS = (
    "a hash table", "garbage collection", "recursion", "the HTTP protocol", "a relational database", "git branching",
    "continuous integration", "unit testing", "public key cryptography", "a compiler", "speculative decoding",
    "a message queue", "an operating system scheduler", "floating point arithmetic", "binary search", "DNS",
)  # fmt: skip
_TOOLS = (
    ("read", {"path": "src/app.py"}), ("read", {"path": "tests/test_app.py", "first": 1, "last": 80}),
    ("search", {"pattern": "def main", "path": "src"}), ("glob", {"pattern": "**/*.py"}),
    ("shell", {"command": "python -m pytest -q"}), ("shell", {"command": "git status --short"}),
    ("edit", {"path": "src/app.py", "old": "x = 1", "new": "x = 2"}),
    ("write", {"path": "src/new.py", "content": "def f():\n    return 1\n"}), ("finish", {"summary": "Done."}),
)  # fmt: skip
_MODULES_FOR_TRAINING = 120
_LONGEST_SOURCE = 1400  # characters


def training_prompts(count: int, seed: int = 1) -> list[list[dict[str, str]]]:
    """`count` conversations for the target to answer, the same ones each time."""
    chance = random.Random(seed)
    functions = list(_functions(chance))
    kinds = (
        (_function_request, 4), (_class_request, 2), (_source_request, 4), (_tool_request, 2), (_prose_request, 1),
    )  # fmt: skip
    makers = [maker for maker, share in kinds for _ in range(share)]
    return [chance.choice(makers)(chance, functions) for _ in range(count)]


def held_out_prompts() -> list[list[dict[str, str]]]:
    return [[{"role": "user", "content": text}] for text in HELD_OUT]


def _function_request(chance: random.Random, _: list[str]) -> list[dict[str, str]]:
    language, verb, thing = (chance.choice(words) for words in (_LANGUAGES, _VERBS, _THINGS))
    second = f" and {chance.choice(_VERBS)} it" if chance.random() < 0.3 else ""
    text = f"Write a {language} function that {verb} {thing}{second}.{chance.choice(_EXTRAS)}"
    return _from_user(text)


def _class_request(chance: random.Random, _: list[str]) -> list[dict[str, str]]:
    verbs = ", ".join(verb.rstrip("s") for verb in chance.sample(_VERBS, 3))
    language = chance.choice(_LANGUAGES[:8])
    name = chance.choice(_NOUNS)
    return _from_user(f"Write a {language} class {name} with methods to {verbs}.{chance.choice(_EXTRAS)}")


def _source_request(chance: random.Random, functions: list[str]) -> list[dict[str, str]]:
    return _from_user(f"{chance.choice(_WORK)}\n\n```python\n{chance.choice(functions)}\n```")


def _tool_request(chance: random.Random, _: list[str]) -> list[dict[str, str]]:
    shown = chance.sample(_TOOLS, 3)
    lines = "\n".join(json.dumps({"name": name, "arguments": arguments}) for name, arguments in shown)
    verb, thing = chance.choice(_VERBS), chance.choice(_THINGS)
    return [
        {
            "role": "system",
            "content": f"You work in a repository. Answer with one JSON call, such as:\n{lines}",
        },
        {"role": "user", "content": f"The function that {verb} {thing} is wrong. What do you do next?"},
    ]


def _prose_request(chance: random.Random, _: list[str]) -> list[dict[str, str]]:
    return _from_user(chance.choice(_PROSE).format(chance.choice(_SUBJECTS)))


def _from_user(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def _functions(chance: random.Random) -> Iterator[str]:
    """Short functions of Python's own library, which is on every machine that trains."""
    names = sorted(
        name for _, name, _ in pkgutil.iter_modules() if name in sys.stdlib_module_names and name[0] != "_"
    )
    names = [name for name in names if name not in {"antigravity", "this", "idlelib", "test"}]
    for name in chance.sample(names, min(_MODULES_FOR_TRAINING, len(names))):
        try:
            module = import_module(name)
        except Exception:  # some modules are for other systems, and say so in their own ways
            continue
        members = inspect.getmembers(module, inspect.isfunction)
        classes = inspect.getmembers(module, inspect.isclass)
        inside = (inspect.getmembers(one, inspect.isfunction) for _, one in classes if one.__module__ == name)
        for _, function in itertools.chain(members, *inside):
            try:
                source = inspect.cleandoc(inspect.getsource(function))
            except (OSError, TypeError):
                continue
            if 80 < len(source) < _LONGEST_SOURCE:
                yield source
