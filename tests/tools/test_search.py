import asyncio
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from agent.core.tool import ToolContext
from tools.search import SearchParams, SearchTool

needs_ripgrep = pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed")


@pytest.fixture(params=[pytest.param("ripgrep", marks=needs_ripgrep), "python"])
def engine(request: pytest.FixtureRequest, context: ToolContext, tmp_path: Path) -> ToolContext:
    """A context in which there is ripgrep, and one in which there is not."""
    if request.param == "ripgrep":
        return context
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "git").symlink_to(shutil.which("git") or "/usr/bin/git")
    return replace(context, environment={**os.environ, "PATH": str(programs)})


@pytest.fixture
def search(engine: ToolContext):
    async def run(pattern: str, **options: str):
        return await SearchTool().run(SearchParams(pattern=pattern, **options), engine)

    return run


@pytest.fixture
def project(workspace: Path) -> Path:
    (workspace / "src" / "deep").mkdir(parents=True)
    (workspace / "src" / "a.py").write_text("def add(a, b):\n    return a + b\n", encoding="utf-8")
    (workspace / "src" / "deep" / "b.py").write_text("from a import add\nadd(1, 2)\r\n", encoding="utf-8")
    (workspace / "src" / "z.js").write_text("add()\n", encoding="utf-8")
    (workspace / ".hidden").write_text("add hidden\n", encoding="utf-8")
    (workspace / "data.bin").write_bytes(b"\0add\n")
    return workspace


def make_repository(folder: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)


async def test_finds_lines_in_a_fixed_order(search, project: Path):
    assert (await search(r"add\(")).model_text == (
        "src/a.py:1: def add(a, b):\nsrc/deep/b.py:2: add(1, 2)\nsrc/z.js:1: add()"
    )


async def test_finds_hidden_files_but_nothing_in_the_repository_folder(search, project: Path):
    make_repository(project)
    (project / ".git" / "note").write_text("add hidden\n", encoding="utf-8")

    assert (await search("hidden")).model_text == ".hidden:1: add hidden"


async def test_searches_below_a_folder_or_in_one_file(search, project: Path):
    assert (await search("add", path="src/deep")).model_text == (
        "src/deep/b.py:1: from a import add\nsrc/deep/b.py:2: add(1, 2)"
    )
    assert (await search("return", path="src/a.py")).model_text == "src/a.py:2:     return a + b"


@pytest.mark.parametrize(
    "options",
    [{"glob": "*.js"}, {"glob": "src/*.js"}, {"glob": "*.{js,ts}"}, {"path": "*.js"}, {"path": "src/*.js"}],
)
async def test_searches_only_files_that_fit_the_name(search, project: Path, options: dict[str, str]):
    assert (await search("add", **options)).model_text == "src/z.js:1: add()"


async def test_a_name_pattern_does_not_bring_back_what_is_ignored(search, project: Path):
    (project / ".gitignore").write_text("z.js\n", encoding="utf-8")

    assert (await search("add", glob="*.js")).model_text == "no matches"


async def test_respects_ignore_files_outside_of_git(search, project: Path):
    (project / ".gitignore").write_text("src/*\n!src/a.py\n.hidden\n", encoding="utf-8")
    (project / "node_modules").mkdir()
    (project / "node_modules" / "x.js").write_text("add\n", encoding="utf-8")

    assert (await search("add")).model_text == "src/a.py:1: def add(a, b):"


async def test_ignore_files_above_a_folder_outside_of_git_do_not_count(search, project: Path):
    (project.parent / ".gitignore").write_text("*\n", encoding="utf-8")

    assert (await search("return")).model_text == "src/a.py:2:     return a + b"


async def test_respects_what_git_ignores(search, project: Path):
    make_repository(project)
    (project / ".gitignore").write_text("deep/\n*.js\n", encoding="utf-8")
    (project / ".git" / "info" / "exclude").write_text(".hidden\n", encoding="utf-8")

    assert (await search("add")).model_text == "src/a.py:1: def add(a, b):"
    assert (await search("add", path="src")).model_text == "src/a.py:1: def add(a, b):"


async def test_a_bad_expression_is_an_error_that_comes_with_a_literal_search(search, project: Path):
    result = await search("add(")

    assert result.is_error
    assert result.model_text.startswith("Not a valid regular expression (")
    assert result.model_text.endswith(
        "so it was searched as plain text:\n"
        "src/a.py:1: def add(a, b):\nsrc/deep/b.py:2: add(1, 2)\nsrc/z.js:1: add()"
    )


async def test_an_expression_that_fits_nothing_is_tried_as_plain_text(search, project: Path):
    result = await search("def add(a, b):")

    assert not result.is_error
    assert result.model_text == (
        "no matches as a regular expression, but as plain text:\nsrc/a.py:1: def add(a, b):"
    )


@pytest.mark.parametrize(
    "options",
    [
        {"path": "app/[id]"},
        {"path": "app/[id]/page.tsx"},
        {"path": "app/[id]/*.tsx"},
        {"path": "app", "glob": "[id]/*.tsx"},
    ],
)
async def test_brackets_in_the_name_of_a_folder_are_no_pattern(
    search, workspace: Path, options: dict[str, str]
):
    """As in the routes of Next.js and others."""
    (workspace / "app" / "[id]").mkdir(parents=True)
    (workspace / "app" / "[id]" / "page.tsx").write_text("needle\n", encoding="utf-8")
    assert (await search("needle", **options)).model_text == "app/[id]/page.tsx:1: needle"


@pytest.mark.parametrize("pattern", ["zebra", "zeb.a", "-e", "--files"])
async def test_says_when_there_is_nothing(search, project: Path, pattern: str):
    result = await search(pattern)

    assert (result.model_text, result.is_error) == ("no matches", False)


async def test_look_around_works(search, project: Path):
    assert (await search(r"add(?=\(\))")).model_text == "src/z.js:1: add()"


async def test_many_matches_are_cut_with_a_note(search, workspace: Path):
    (workspace / "many.txt").write_text("x\n" * 500, encoding="utf-8")

    lines = (await search("x")).model_text.split("\n")

    assert len(lines) == 101
    assert lines[-1] == "(there are more matches; use a narrower pattern, path or glob)"


async def test_of_a_long_line_the_part_around_the_match_is_shown(search, workspace: Path):
    (workspace / "min.js").write_text("a" * 3000 + "needle" + "b" * 500_000 + "\n", encoding="utf-8")

    result = await search("needle")

    assert result.model_text == f"min.js:1: …{'a' * 80}needle{'b' * 154}…"


async def test_finds_text_in_utf_16(search, workspace: Path):
    (workspace / "a.txt").write_bytes("one\ntwo\n".encode("utf-16"))

    assert (await search("two")).model_text == "a.txt:2: two"


async def test_bytes_that_are_no_utf_8_do_no_harm(search, workspace: Path):
    (workspace / "a.txt").write_bytes(b"caf\xe9 one\n")

    assert (await search("one")).model_text == "a.txt:1: caf\ufffd one"


async def test_odd_file_names_do_no_harm(search, workspace: Path):
    (workspace / "a:1: b").write_text("one\n", encoding="utf-8")
    Path(os.fsdecode(os.fsencode(workspace) + b"/\xff")).write_text("one\n", encoding="utf-8")

    assert (await search("one")).model_text == "a:1: b:1: one\n\ufffd:1: one"


@pytest.mark.parametrize(
    "options",
    [
        {"pattern": ""},
        {"pattern": "a\0b"},
        {"pattern": "x", "path": ".."},
        {"pattern": "x", "path": "no"},
        {"pattern": "x", "glob": "{"},
    ],
)
async def test_what_makes_no_sense_is_an_error(engine: ToolContext, options: dict[str, str]):
    assert (await SearchTool().run(SearchParams(**options), engine)).is_error


async def test_an_expression_that_takes_for_ever_can_be_cancelled(context: ToolContext, workspace: Path):
    (workspace / "a.txt").write_text("a" * 60 + "b\n", encoding="utf-8")
    without_ripgrep = replace(context, environment={"PATH": "/nowhere"})
    task = asyncio.create_task(SearchTool().run(SearchParams(pattern="(a+)+$"), without_ripgrep))

    await asyncio.wait([task], timeout=0.3)
    assert not task.done()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_lines_of_files_that_may_not_be_read_are_left_out_and_counted(
    engine: ToolContext, project: Path
):
    closed = {project / "src" / "a.py", project / ".hidden"}
    context = replace(engine, may_read=lambda path: path not in closed)

    result = await SearchTool().run(SearchParams(pattern="add"), context)

    assert result.model_text == (
        "src/deep/b.py:1: from a import add\nsrc/deep/b.py:2: add(1, 2)\nsrc/z.js:1: add()\n"
        "(2 files left out (permissions))"
    )


async def test_the_count_says_nothing_about_what_is_in_the_files(engine: ToolContext, project: Path):
    context = replace(engine, may_read=lambda path: path.name != "a.py")

    found, missed = [
        (await SearchTool().run(SearchParams(pattern=pattern), context)).model_text
        for pattern in ("return a", "nothing like this")
    ]

    assert found == missed == "no matches\n(1 file left out (permissions))"


async def test_a_file_that_is_named_was_judged_before(engine: ToolContext, project: Path):
    context = replace(engine, may_read=lambda path: False)

    result = await SearchTool().run(SearchParams(pattern="return", path="src/a.py"), context)

    assert result.model_text == "src/a.py:2:     return a + b"
