"""Reads sources and prints what they define. Run as `python -I worker.py` in a process of its own.

Sources are not trusted, and a grammar is C code: neither can be interrupted in a thread. A file that takes
too long, or more memory than there is, ends this process; whoever started it goes on with the next file.
Imports nothing of ours, so that it starts fast.

Standard input: a JSON array of [name, module of the grammar, its function, name of the query]. Standard
output: a line of JSON for each of them, in their order, see `read_source`.
"""

import contextlib
import importlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

LARGEST_FILE_BYTES = 512 * 1024
LONGEST_LINE_BYTES = 5000
SECONDS_PER_FILE = 2
MOST_DEFINITIONS = 600
MOST_WORDS = 3000
LONGEST_SIGNATURE = 110
_MEMORY_BYTES = 1 << 30
_MOST_MATCHES = 20_000
_WORD = re.compile(rb"[A-Za-z_][A-Za-z0-9_]{2,39}")
_TYPES_THAT_HOLD_OTHERS = re.compile(
    r"class|interface|struct|enum|union|trait|impl|mod|record|type|annotation"
)

Grammar = tuple[Any, Any]
"""A parser and a query, as tree-sitter makes them."""


def main() -> None:
    _limit_memory()
    arm = _alarm()
    grammars: dict[tuple[str, str], Grammar | None] = {}
    for name, module, function, query in json.loads(sys.stdin.buffer.read()):
        arm(SECONDS_PER_FILE)
        key = (module, function)
        if key not in grammars:
            grammars[key] = _grammar(module, function, query)
        answer = {"name": name, **read_source(Path(name), grammars[key])}
        sys.stdout.buffer.write(json.dumps(answer).encode("ascii") + b"\n")
        sys.stdout.buffer.flush()
    arm(0)


def read_source(path: Path, grammar: Grammar | None) -> dict[str, Any]:
    """`definitions` are [line, depth, name, signature], `words` what a source uses, with spaces between.

    Both are empty for what is no source, too big, or written for no reader.
    """
    nothing = {"definitions": [], "words": ""}
    try:
        with path.open("rb") as stream:
            text = stream.read(LARGEST_FILE_BYTES + 1)
    except OSError:
        return nothing
    if grammar is None or len(text) > LARGEST_FILE_BYTES or b"\0" in text:
        return nothing
    if any(len(line) > LONGEST_LINE_BYTES for line in text.split(b"\n")):
        return nothing  # made by a program
    words = sorted({word.decode("ascii") for word in _WORD.findall(text)})[:MOST_WORDS]
    parser, query = grammar
    found = list(_definitions(parser.parse(text).root_node, query, text))
    return {"definitions": found[:MOST_DEFINITIONS], "words": " ".join(words)}


def _definitions(root: Any, query: Any, text: bytes) -> Iterator[tuple[int, int, str, str]]:
    """In the order of the lines; without what is local to a function."""
    from tree_sitter import QueryCursor

    cursor = QueryCursor(query, match_limit=_MOST_MATCHES)
    found: dict[int, tuple[Any, Any]] = {}
    for _, captures in cursor.matches(root):
        nodes, names = captures.get("definition"), captures.get("name")
        if nodes and names:
            found.setdefault(names[0].start_byte, (nodes[0], names[0]))
    around: list[tuple[int, bool]] = []  # where each enclosing definition ends, and whether it is a type
    for node, name in sorted(found.values(), key=lambda pair: (pair[0].start_byte, pair[1].start_byte)):
        while around and around[-1][0] <= node.start_byte:
            around.pop()
        if all(is_type for _, is_type in around):
            shown = text[name.start_byte : name.end_byte].decode("utf-8", "replace")
            yield node.start_point[0] + 1, len(around), shown[:LONGEST_SIGNATURE], _signature(node, text)
        around.append((node.end_byte, bool(_TYPES_THAT_HOLD_OTHERS.search(node.type))))


def _signature(node: Any, text: bytes) -> str:
    """What stands before the body, in one line."""
    body = node.child_by_field_name("body")
    end = body.start_byte if body is not None else node.end_byte
    head = text[node.start_byte : min(end, node.start_byte + 4 * LONGEST_SIGNATURE)]
    if body is None:
        head = head.partition(b"\n")[0]
    line = " ".join(head.decode("utf-8", "replace").split()).rstrip(" :{=;")
    line = line.replace("( ", "(").replace(", )", ")").replace(" )", ")")
    return line if len(line) <= LONGEST_SIGNATURE else line[: LONGEST_SIGNATURE - 1] + "…"


def _grammar(module: str, function: str, query: str) -> Grammar | None:
    """None where the wheel of a language is not installed."""
    try:
        from tree_sitter import Language, Parser, Query

        language = Language(getattr(importlib.import_module(module), function)())
    except (ImportError, AttributeError, ValueError):
        return None
    pattern = Path(__file__).with_name("queries") / f"{query}.scm"
    return Parser(language), Query(language, pattern.read_text("utf-8"))


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))


def _alarm() -> Callable[[float], None]:
    """Sets the time after which the system ends this process, also inside of C code; 0 = never."""
    try:
        from signal import ITIMER_REAL, SIG_DFL, SIGALRM, setitimer, signal
    except ImportError:  # where there are no signals
        return lambda seconds: None
    signal(SIGALRM, SIG_DFL)
    return lambda seconds: (setitimer(ITIMER_REAL, seconds), None)[1]


if __name__ == "__main__":
    main()
