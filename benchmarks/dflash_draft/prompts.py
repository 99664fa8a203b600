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
import textwrap
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

_WORDS = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))
_TOOLS = (
    ("read", {"path": "src/app.py"}), ("read", {"path": "tests/test_app.py", "first": 1, "last": 80}),
    ("search", {"pattern": "def main", "path": "src"}), ("glob", {"pattern": "**/*.py"}),
    ("shell", {"command": "python -m pytest -q"}), ("shell", {"command": "git status --short"}),
    ("edit", {"path": "src/app.py", "old": "x = 1", "new": "x = 2"}),
    ("write", {"path": "src/new.py", "content": "def f():\n    return 1\n"}),
    ("finish", {"summary": "Done."}),
)  # fmt: skip
_MODULES_FOR_TRAINING = 120
_LONGEST_SOURCE = 1400  # characters


def training_prompts(count: int, seed: int = 1) -> list[list[dict[str, str]]]:
    """`count` conversations for the target to answer, the same ones each time."""
    chance = random.Random(seed)
    functions = list(_functions(chance))
    kinds = (
        (_function_request, 4),
        (_class_request, 2),
        (_source_request, 4),
        (_tool_request, 2),
        (_prose_request, 1),
    )
    makers = [maker for maker, share in kinds for _ in range(share)]
    return [chance.choice(makers)(chance, functions) for _ in range(count)]


def held_out_prompts() -> list[list[dict[str, str]]]:
    return [[{"role": "user", "content": text}] for text in _WORDS["held_out"]]


def _function_request(chance: random.Random, _: list[str]) -> list[dict[str, str]]:
    language, verb, thing = (
        chance.choice(words) for words in (_WORDS["languages"], _WORDS["verbs"], _WORDS["things"])
    )
    second = f" and {chance.choice(_WORDS['verbs'])} it" if chance.random() < 0.3 else ""
    text = f"Write a {language} function that {verb} {thing}{second}.{chance.choice(_WORDS['extras'])}"
    return _from_user(text)


def _class_request(chance: random.Random, _: list[str]) -> list[dict[str, str]]:
    verbs = ", ".join(verb.rstrip("s") for verb in chance.sample(_WORDS["verbs"], 3))
    language = chance.choice(_WORDS["languages"][:8])
    name = chance.choice(_WORDS["nouns"])
    return _from_user(
        f"Write a {language} class {name} with methods to {verbs}.{chance.choice(_WORDS['extras'])}"
    )


def _source_request(chance: random.Random, functions: list[str]) -> list[dict[str, str]]:
    return _from_user(f"{chance.choice(_WORDS['work'])}\n\n```python\n{chance.choice(functions)}\n```")


def _tool_request(chance: random.Random, _: list[str]) -> list[dict[str, str]]:
    shown = chance.sample(_TOOLS, 3)
    lines = "\n".join(json.dumps({"name": name, "arguments": arguments}) for name, arguments in shown)
    verb, thing = chance.choice(_WORDS["verbs"]), chance.choice(_WORDS["things"])
    return [
        {
            "role": "system",
            "content": f"You work in a repository. Answer with one JSON call, such as:\n{lines}",
        },
        {"role": "user", "content": f"The function that {verb} {thing} is wrong. What do you do next?"},
    ]


def _prose_request(chance: random.Random, _: list[str]) -> list[dict[str, str]]:
    return _from_user(chance.choice(_WORDS["prose"]).format(chance.choice(_WORDS["subjects"])))


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
                source = textwrap.dedent(inspect.getsource(function)).strip()
            except (OSError, TypeError):
                continue
            if 80 < len(source) < _LONGEST_SOURCE:
                yield source
