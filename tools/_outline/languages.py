"""Which grammar reads which file. Imports nothing: the worker loads a grammar when it meets such a file."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath


@dataclass(frozen=True, slots=True)
class Language:
    """A grammar: the module of its wheel, the function there, and its query in `queries/`."""

    name: str
    module: str
    function: str = "language"
    query: str = ""


_PYTHON = Language("python", "tree_sitter_python")
_JAVASCRIPT = Language("javascript", "tree_sitter_javascript")
_TYPESCRIPT = Language("typescript", "tree_sitter_typescript", "language_typescript")
_TSX = Language("tsx", "tree_sitter_typescript", "language_tsx", "typescript")
_GO = Language("go", "tree_sitter_go")
_RUST = Language("rust", "tree_sitter_rust")
_C = Language("c", "tree_sitter_c")
_JAVA = Language("java", "tree_sitter_java")
_BY_ENDING: Mapping[str, Language] = {
    ".py": _PYTHON, ".pyi": _PYTHON, ".pyw": _PYTHON,
    ".js": _JAVASCRIPT, ".mjs": _JAVASCRIPT, ".cjs": _JAVASCRIPT, ".jsx": _JAVASCRIPT,
    ".ts": _TYPESCRIPT, ".mts": _TYPESCRIPT, ".cts": _TYPESCRIPT, ".tsx": _TSX,
    ".go": _GO, ".rs": _RUST, ".c": _C, ".h": _C, ".java": _JAVA,
}  # fmt: skip
ENDINGS = tuple(_BY_ENDING)


def language_of(name: str) -> Language | None:
    """The language of a file by the ending of its name."""
    return _BY_ENDING.get(PurePosixPath(name).suffix.lower())
