"""The map of the sources: what it shows, in which order, within which budget, and what cannot stop it."""

import dataclasses
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agent.core.tool import ToolContext, ToolResult
from tools._outline.atlas import Atlas
from tools._outline.index import build_index
from tools._outline.rank import rank
from tools._outline.render import CHARACTERS_PER_TOKEN
from tools.outline import OutlineParams, OutlineTool

Ask = Callable[..., Awaitable[ToolResult]]

LANGUAGES = {
    "a.py": ("class Herd:\n    def count(self) -> int:\n        return 1\n\nLIMIT = 3\n",
             ["1: class Herd", "2: def count(self) -> int", "5: LIMIT = 3"]),
    "a.js": ("export class Herd { count() { return 1 } }\nexport const limit = () => 3\nfunction go(a) {}\n",
             ["1: class Herd", "1: count()", "2: const limit = () => 3", "3: function go(a)"]),
    "a.ts": ("export interface Cow { name(): string }\nexport type Id = string\nenum Kind { A }\n"
             "abstract class Barn { open(): void {} }\n",
             ["1: interface Cow", "1: name(): string", "2: type Id = string", "3: enum Kind",
              "4: abstract class Barn", "4: open(): void"]),
    "a.tsx": ("export function View(props: Props) { return <p/> }\n", ["1: function View(props: Props)"]),
    "a.go": ("package a\n\ntype Cow struct{}\n\nfunc (c *Cow) Moo() string { return \"\" }\n",
             ["3: Cow struct{}", "5: func (c *Cow) Moo() string"]),
    "a.rs": ("pub struct Cow;\nimpl Cow {\n    pub fn moo(&self) -> u8 { 1 }\n}\n",
             ["1: pub struct Cow", "2: impl Cow", "3: pub fn moo(&self) -> u8"]),
    "a.c": ("#define LIMIT 3\nstruct cow { int age; };\nchar *moo(int times) { return 0; }\n",
            ["1: #define LIMIT 3", "2: struct cow", "3: char *moo(int times)"]),
    "a.h": ("int moo(int times);\n", ["1: int moo(int times)"]),
    "A.java": ("class A {\n  A() {}\n  int moo(int times) { return 1; }\n}\n",
               ["1: class A", "2: A()", "3: int moo(int times)"]),
}  # fmt: skip


@pytest.fixture
def outline(context: ToolContext, tmp_path: Path) -> Ask:
    kept = dataclasses.replace(context, cache_folder=tmp_path / "cache")

    async def ask(**arguments: Any) -> ToolResult:
        return await OutlineTool().run(OutlineParams(**arguments), kept)

    return ask


def written(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def files_in(result: ToolResult) -> list[str]:
    return [line for line in result.model_text.splitlines() if line[:1] not in (" ", "(")]


@pytest.mark.parametrize("name", LANGUAGES)
async def test_definitions_of_a_file_are_shown_with_their_lines(workspace: Path, outline: Ask, name: str):
    text, lines = LANGUAGES[name]
    written(workspace, {name: text})
    result = await outline(path=name)
    assert [line.strip() for line in result.model_text.splitlines()] == [name, *lines]


async def test_what_is_local_to_a_function_is_left_out(workspace: Path, outline: Ask):
    written(workspace, {"a.py": "def outer():\n    def inner(): pass\n    class Local: pass\n"})
    assert "inner" not in (await outline(path="a.py")).model_text


async def test_file_that_many_others_use_comes_first(workspace: Path, outline: Ask):
    users = {f"user{n}.py": f"from core import Register\ndef use_{n}(): Register()\n" for n in range(5)}
    written(workspace, {**users, "core.py": "class Register:\n    pass\n"})
    assert files_in(await outline())[0] == "core.py"


async def test_words_find_the_file_that_defines_what_they_say(workspace: Path, outline: Ask):
    files = {f"part{n}.py": f"def part_{n}(): pass\n" for n in range(30)}
    written(workspace, {**files, "net/wire.py": "def parseHeader(text): pass\ndef other(): pass\n"})
    found = await outline(about="where are the headers parsed?")
    assert files_in(found)[0] == "net/wire.py"
    assert "1: def parseHeader(text)" in found.model_text


async def test_source_comes_before_its_test_unless_tests_are_asked_for(workspace: Path, outline: Ask):
    written(workspace, {
        "parcel.py": "def weigh_parcel(): pass\n",
        "tests/test_parcel.py": "def test_parcel(): weigh_parcel()\ndef test_two_parcels(): pass\n",
    })  # fmt: skip
    assert files_in(await outline(about="parcel"))[0] == "parcel.py"
    assert files_in(await outline(about="parcel tests"))[0] == "tests/test_parcel.py"


async def test_words_that_fit_nothing_are_said_to_and_the_map_is_shown(workspace: Path, outline: Ask):
    written(workspace, {"a.py": "def known(): pass\n"})
    result = await outline(about="xylophone")
    assert "nothing fits 'xylophone'" in result.model_text
    assert "def known()" in result.model_text


@pytest.mark.parametrize("tokens", [100, 300, 1000])
async def test_answer_stays_within_its_budget(workspace: Path, outline: Ask, tokens: int):
    body = "".join(f"def function_number_{n}(argument_{n}: int) -> int: return {n}\n" for n in range(60))
    written(workspace, {f"module_{n:03}.py": body for n in range(60)})
    for arguments in ({}, {"about": "function number"}, {"path": "module_001.py"}):
        text = (await outline(tokens=tokens, **arguments)).model_text
        assert tokens < len(text) <= tokens * CHARACTERS_PER_TOKEN + 60


async def test_folder_narrows_it(workspace: Path, outline: Ask):
    written(workspace, {"one/a.py": "def a(): pass\n", "two/b.py": "def b(): pass\n"})
    assert files_in(await outline(path="two")) == ["two/b.py"]


async def test_ignored_files_and_links_are_left_out(workspace: Path, outline: Ask, tmp_path: Path):
    written(workspace, {".gitignore": "built/\n", "a.py": "def a(): pass\n", "built/b.py": "def b(): pass\n",
                        "node_modules/c.js": "function c() {}\n"})  # fmt: skip
    written(tmp_path, {"outside.py": "def secret(): pass\n"})
    (workspace / "link.py").symlink_to(tmp_path / "outside.py")
    assert files_in(await outline()) == ["a.py"]


@pytest.mark.parametrize(
    ("path", "words"),
    [("gone.py", "gone.py"), ("a.rb", "no outline of a.rb"), ("../out", "outside"), ("empty", "no .py")],
)
async def test_path_without_an_outline_is_refused_in_words(
    workspace: Path, outline: Ask, path: str, words: str
):
    (workspace / "empty").mkdir()
    written(workspace, {"a.rb": "def a; end\n"})
    result = await outline(path=path)
    assert result.is_error
    assert words in result.model_text


HOSTILE = {
    "one line of a megabyte": b"x = [" + b"1," * 500_000 + b"]\n",
    "one line of 300 KB": b"x = [" + b"1," * 150_000 + b"]\n",
    "deep brackets": b"x = " + b"(\n" * 100_000 + b"\n",
    "deep blocks": b"".join(b" " * n + b"if x:\n" for n in range(900)),
    "broken syntax": b"def (((: class \xff\xfe ]]] 'open\n" * 4000,
    "zero bytes": b"def a(): pass\n\0\0\0" * 100,
    "nothing": b"",
    "other line ends": b"def kept(): pass\rdef also(): pass\r",
}


@pytest.mark.parametrize("ending", [".py", ".ts", ".c"])
async def test_hostile_files_never_keep_the_others_from_being_shown(
    workspace: Path, outline: Ask, ending: str
):
    for name, content in HOSTILE.items():
        (workspace / f"{name}{ending}").write_bytes(content)
    written(workspace, {"zzz.py": "def after_the_hostile_ones(): pass\n"})
    found = (await outline(about="hostile ones")).model_text
    assert "after_the_hostile_ones" in found
    assert "not read yet" not in found


async def test_file_that_ends_the_reader_is_passed_over_and_remembered(workspace: Path, tmp_path: Path):
    """A memory limit so low that a larger file cannot be read stands for whatever ends a grammar."""
    written(workspace, {"a.py": "def first(): pass\n", "b.py": "def second(): pass\n"})
    (workspace / "killer.py").write_text("raise SystemExit\n")
    reader = tmp_path / "reader.py"
    reader.write_text(
        "import json, os, sys\n"
        "for name, *_ in json.loads(sys.stdin.read()):\n"
        "    if name == 'killer.py': os.abort()\n"
        "    found = {'name': name, 'definitions': [[1, 0, name, name]], 'words': ''}\n"
        "    print(json.dumps(found), flush=True)\n"
    )
    names = ["a.py", "killer.py", "b.py"]
    index = await build_index(workspace, names, dict(os.environ), None, reader=reader)
    assert {name: len(source.definitions) for name, source in index.sources.items()} == {
        "a.py": 1, "killer.py": 0, "b.py": 1,
    }  # fmt: skip
    assert index.missing == 0


async def test_what_there_was_no_time_for_is_left_for_the_next_call(workspace: Path, tmp_path: Path):
    written(workspace, {"a.py": "def a(): pass\n", "b.py": "def b(): pass\n"})
    cache = tmp_path / "cache"
    none = await build_index(workspace, ["a.py", "b.py"], dict(os.environ), cache, seconds=0)
    assert (len(none.sources), none.missing) == (0, 2)
    later = await build_index(workspace, ["a.py", "b.py"], dict(os.environ), cache)
    assert (len(later.sources), later.missing) == (2, 0)


async def test_unchanged_files_come_from_the_cache_and_changed_ones_are_read(workspace: Path, tmp_path: Path):
    written(workspace, {"a.py": "def a(): pass\n", "b.py": "def b(): pass\n"})
    cache, environment = tmp_path / "cache", dict(os.environ)
    await build_index(workspace, ["a.py", "b.py"], environment, cache)
    nobody = tmp_path / "reads-nothing.py"
    nobody.write_text("raise SystemExit(1)\n")
    written(workspace, {"b.py": "def longer_than_before(): pass\n"})
    again = await build_index(workspace, ["a.py", "b.py"], environment, cache, reader=nobody)
    assert [one.name for one in again.sources["a.py"].definitions] == ["a"]
    assert again.sources["b.py"].definitions == ()
    fresh = await build_index(workspace, ["a.py", "b.py"], environment, tmp_path / "other")
    assert [one.name for one in fresh.sources["b.py"].definitions] == ["longer_than_before"]


async def test_a_session_reads_again_only_what_changed_and_sees_it(workspace: Path, outline: Ask):
    written(workspace, {"a.py": "def first(): pass\n", "b.py": "def second(): pass\n"})
    assert files_in(await outline(about="second")) == ["b.py"]
    written(workspace, {"b.py": "def another_name(): pass\n", "c.py": "def third(): pass\n"})
    (workspace / "a.py").unlink()
    assert files_in(await outline()) == ["b.py", "c.py"]
    assert "another_name" in (await outline(about="another")).model_text
    assert "nothing fits" in (await outline(about="second")).model_text


async def test_weights_are_kept_while_hardly_anything_changes(workspace: Path, tmp_path: Path):
    files = {f"part{n:03}.py": f"def part_{n}(): pass\n" for n in range(200)}
    written(workspace, files)
    atlas = Atlas(workspace, tmp_path / "cache")
    first = await atlas.ranking(await atlas.look(list(files), dict(os.environ)), ".")
    written(workspace, {"part000.py": "def changed(): pass\n"})
    index = await atlas.look(list(files), dict(os.environ))
    assert await atlas.ranking(index, ".") is first
    next_session = await Atlas(workspace, tmp_path / "cache").ranking(index, ".")
    assert next_session.stamps == first.stamps
    for number in range(5):
        written(workspace, {f"part{number:03}.py": "def changed_as_well(): pass\n"})
    index = await atlas.look(list(files), dict(os.environ))
    assert (await atlas.ranking(index, ".")).uses.keys() == rank(index.sources).uses.keys()
    assert await atlas.ranking(index, ".") is not first


async def test_names_that_are_no_utf8_are_kept_too(workspace: Path, tmp_path: Path):
    name = os.fsdecode(b"caf\xe9.py")
    (workspace / name).write_text("def a(): pass\n", encoding="utf-8")
    await build_index(workspace, [name], dict(os.environ), tmp_path)
    nobody = tmp_path / "reads-nothing.py"
    nobody.write_text("raise SystemExit(1)\n")
    again = await build_index(workspace, [name], dict(os.environ), tmp_path, reader=nobody)
    assert [one.name for one in again.sources[name].definitions] == ["a"]


@pytest.mark.parametrize("content", [b"", b"garbage", b"x\x9c\x03\x00\x00\x00\x00\x01"])
async def test_damaged_cache_costs_nothing_but_time(workspace: Path, tmp_path: Path, content: bytes):
    written(workspace, {"a.py": "def a(): pass\n"})
    cache, environment = tmp_path / "cache", dict(os.environ)
    await build_index(workspace, ["a.py"], environment, cache)
    (file,) = (cache / "outline").iterdir()
    file.write_bytes(content)
    assert (await build_index(workspace, ["a.py"], environment, cache)).sources["a.py"].definitions


async def test_cache_that_cannot_be_written_is_no_error(workspace: Path, tmp_path: Path):
    written(workspace, {"a.py": "def a(): pass\n"})
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    assert (await build_index(workspace, ["a.py"], dict(os.environ), blocked)).sources["a.py"].definitions


async def test_files_that_may_not_be_read_are_not_in_the_map(context: ToolContext, workspace: Path):
    (workspace / "open.py").write_text("def shown(): ...\n", encoding="utf-8")
    (workspace / "closed.py").write_text("def secret(): ...\n", encoding="utf-8")
    some = dataclasses.replace(context, may_read=lambda path: path.name != "closed.py")
    none = dataclasses.replace(context, may_read=lambda path: False)

    shown = await OutlineTool().run(OutlineParams(), some)
    refused = await OutlineTool().run(OutlineParams(), none)

    assert "shown" in shown.model_text
    assert "secret" not in shown.model_text
    assert refused.is_error
    assert "permissions" in refused.model_text
