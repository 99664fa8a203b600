"""Suites of prompts: those that come along, and files of a person's own.

A file is Markdown or text (one prompt, the whole file), or TOML or JSON like those in `prompts/`:
`prompts` (in TOML `[[prompt]]`) with `id` and `text` or `messages`, `defaults` for all of them, and in JSON
`messages` and `tools` that several prompts share, each with the `first_messages` of them, `then` some more.
"""

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent.bench.prompt import BenchPrompt
from agent.core.errors import UsageError

SUITES = ("coding", "quality", "agent")
_FOLDER = Path(__file__).with_name("prompts")
_LARGEST_FILE_BYTES = 8_000_000
_KEYS = frozenset(
    {"id", "title", "category", "text", "messages", "first_messages", "then", "tools", "request"}
    | {"max_tokens", "temperature"}
)


def load_suite(name: str) -> tuple[BenchPrompt, ...]:
    """The prompts of a suite that comes along.

    Raises:
        UsageError: there is no such suite.
    """
    if name not in SUITES:
        raise UsageError(f"there is no suite {name!r}", f"there are: {', '.join(SUITES)}")
    path = next(path for path in sorted(_FOLDER.iterdir()) if path.stem == name)
    return load_prompt_file(path)


def load_prompt_file(path: Path) -> tuple[BenchPrompt, ...]:
    """The prompts in a file.

    Raises:
        UsageError: it cannot be read, or is not what the ending of its name says.
    """
    text = _read(path)
    try:
        if path.suffix == ".toml":
            table: Any = tomllib.loads(text)
        elif path.suffix == ".json":
            table = json.loads(text)
        else:
            return (_one(path, text),)
    except ValueError as error:  # of both parsers
        raise UsageError(f"{path} cannot be read: {error}", "correct that line") from error
    if not isinstance(table, dict):
        raise UsageError(f"{path}: not a table of prompts", "see docs/bench.md for the form")
    return _prompts(path, table)


def selected(
    prompts: Iterable[BenchPrompt], *, categories: Sequence[str] = (), limit: int | None = None
) -> tuple[BenchPrompt, ...]:
    """The prompts of some categories (or with these ids), at most `limit` of each category.

    Raises:
        UsageError: a category that no prompt has.
    """
    prompts = tuple(prompts)
    known = list(dict.fromkeys([*(one.category for one in prompts), *(one.id for one in prompts)]))
    if unknown := [name for name in categories if name not in known]:
        raise UsageError(f"there is no category or prompt {unknown[0]!r}", f"there are: {', '.join(known)}")
    chosen: list[BenchPrompt] = []
    for prompt in prompts:
        if categories and not {prompt.category, prompt.id} & set(categories):
            continue
        if limit is None or sum(one.category == prompt.category for one in chosen) < limit:
            chosen.append(prompt)
    return tuple(chosen)


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > _LARGEST_FILE_BYTES:
            raise UsageError(f"{path} is too big for a file of prompts")
        return path.read_text("utf-8")
    except OSError as error:
        raise UsageError(f"cannot read the prompts in {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text (byte {error.start})") from error


def _one(path: Path, text: str) -> BenchPrompt:
    if not text.strip():
        raise UsageError(f"{path} is empty", "a prompt file holds the text of one prompt")
    return BenchPrompt.of_text(text.strip(), path.stem or "prompt")


def _prompts(path: Path, table: Mapping[str, Any]) -> tuple[BenchPrompt, ...]:
    entries = table.get("prompts", table.get("prompt"))
    defaults = table.get("defaults", {})
    if not isinstance(entries, list) or not entries or not isinstance(defaults, dict):
        raise UsageError(f"{path} has no prompts", "see docs/bench.md for the form")
    shared = {name: table.get(name, []) for name in ("messages", "tools")}
    if not all(isinstance(value, list) for value in shared.values()):
        raise UsageError(f"{path}: messages and tools must be lists")
    prompts = []
    for number, entry in enumerate(entries, start=1):
        where = f"{path}: prompt {number}"
        if not isinstance(entry, dict):
            raise UsageError(f"{where} is no table")
        prompts.append(_prompt(where, {**defaults, **entry}, shared, number))
    identities = [prompt.id for prompt in prompts]
    if twice := [identity for identity in identities if identities.count(identity) > 1]:
        raise UsageError(f"{path}: two prompts have the id {twice[0]!r}")
    return tuple(prompts)


def _prompt(where: str, entry: Mapping[str, Any], shared: Mapping[str, Any], number: int) -> BenchPrompt:
    if unknown := sorted(entry.keys() - _KEYS):
        raise UsageError(f"{where}: unknown key {unknown[0]!r}", f"known: {', '.join(sorted(_KEYS))}")
    for name, kind in (("tools", list), ("messages", list), ("then", list), ("request", dict)):
        if not isinstance(entry.get(name, kind()), kind):
            raise UsageError(f"{where}: {name} must be {'a list' if kind is list else 'a table'}")
    max_tokens, temperature = entry.get("max_tokens"), entry.get("temperature")
    if max_tokens is not None and (not isinstance(max_tokens, int) or max_tokens < 1):
        raise UsageError(f"{where}: max_tokens must be a whole number above 0")
    if temperature is not None and (not isinstance(temperature, int | float) or not 0 <= temperature <= 5):
        raise UsageError(f"{where}: temperature must be a number from 0 to 5")
    return BenchPrompt(
        id=str(entry.get("id", f"prompt-{number}")),
        title=str(entry.get("title", "")),
        category=str(entry.get("category", "own")),
        messages=_messages(where, entry, shared),
        tools=tuple(entry.get("tools", shared["tools"])),
        request=dict(entry.get("request", {})),
        max_tokens=max_tokens,
        temperature=temperature,
    )


def _messages(where: str, entry: Mapping[str, Any], shared: Mapping[str, Any]) -> tuple[Any, ...]:
    text = entry.get("text")
    if text is not None:
        if not isinstance(text, str) or not text.strip():
            raise UsageError(f"{where}: text is empty")
        return ({"role": "user", "content": text.strip()},)
    first = entry.get("first_messages")
    own = entry.get("messages", shared["messages"][:first] if isinstance(first, int) else None)
    messages = [*(own or ()), *entry.get("then", ())]
    if not messages or not all(isinstance(one, dict) and "role" in one for one in messages):
        raise UsageError(f"{where}: neither text nor messages", "see docs/bench.md for the form")
    return tuple(messages)
