from pathlib import Path

import pytest

from tools.edit import EditParams, EditTool
from tools.read import ReadParams, ReadTool

CODE = b"def add(a, b):\n    return a - b\n\n\ndef sub(a, b):\n    return a - b\n"


@pytest.fixture
def edit(context):
    async def run(path: str, old: str, new: str, **options: bool):
        return await EditTool().run(EditParams(path=path, old=old, new=new, **options), context)

    return run


@pytest.fixture
def known(workspace: Path, context):
    """Puts a file there and lets the model read it."""

    async def create(content: bytes, name: str = "calc.py") -> Path:
        path = workspace / name
        path.write_bytes(content)
        await ReadTool().run(ReadParams(path=name), context)
        return path

    return create


async def test_replaces_a_text_that_occurs_once(edit, known, ledger):
    path = await known(CODE)

    result = await edit("calc.py", "def add(a, b):\n    return a - b", "def add(a, b):\n    return a + b")

    assert path.read_bytes() == CODE.replace(b"a - b", b"a + b", 1)
    assert result.model_text == "Edited calc.py at line 1."
    assert result.diffs[0].path == "calc.py"
    assert result.diffs[0].before == CODE.decode()
    assert ledger.originals[path] == CODE
    assert not ledger.is_stale(path)


async def test_more_than_one_match_is_an_error_that_names_the_lines(edit, known):
    path = await known(CODE)

    result = await edit("calc.py", "    return a - b", "    return a + b")

    assert result.is_error
    assert result.model_text.startswith("old is 2 times in calc.py, at lines 2, 6.")
    assert path.read_bytes() == CODE


async def test_replaces_every_match_when_asked(edit, known):
    path = await known(CODE)

    result = await edit("calc.py", "a - b", "a + b", all=True)

    assert path.read_bytes() == CODE.replace(b"a - b", b"a + b")
    assert result.model_text == "Edited calc.py at line 2, 6."


async def test_old_equal_to_new_is_an_error_that_says_so(edit, known):
    await known(CODE)

    result = await edit("calc.py", "a - b", "a - b")

    assert result.is_error
    assert result.model_text == "Nothing changed: old and new are the same. Put the changed text into new."


async def test_a_result_identical_to_the_file_is_an_error_that_says_so(edit, known):
    await known(b"x = 1\r\ny = 2\r\n")

    result = await edit("calc.py", "x = 1\ny = 2", "x = 1\r\ny = 2")

    assert result.is_error
    assert result.model_text.startswith("Nothing changed")


async def test_an_empty_old_is_an_error(edit, known):
    await known(CODE)

    assert (await edit("calc.py", "", "x")).model_text.startswith("old is empty.")


async def test_ignores_trailing_space(edit, known):
    path = await known(b"if x:   \n    go()\nend\n")

    result = await edit("calc.py", "if x:\n    go()  ", "if y:\n    go()")

    assert path.read_bytes() == b"if y:\n    go()\nend\n"
    assert result.model_text == "Edited calc.py at line 1 (trailing space differed and was adapted)."


async def test_adapts_the_indentation(edit, known):
    path = await known(b"class A:\n    def f(self):\n        return 1\n")

    result = await edit(
        "calc.py",
        "def f(self):\n    return 1",
        "def f(self):\n    if self:\n        return 2\n\n    return 1",
    )

    assert path.read_bytes() == (
        b"class A:\n    def f(self):\n        if self:\n            return 2\n\n        return 1\n"
    )
    assert "indentation differed" in result.model_text


async def test_an_exact_match_wins_over_a_tolerant_one(edit, known):
    path = await known(b"  x = 1\nx = 1\n")

    await edit("calc.py", "\nx = 1\n", "\nx = 2\n")

    assert path.read_bytes() == b"  x = 1\nx = 2\n"


async def test_accepts_old_with_the_line_numbers_of_read(edit, known):
    path = await known(CODE)

    await edit(
        "calc.py", "5\tdef sub(a, b):\n6\t    return a - b", "5\tdef minus(a, b):\n6\t    return a - b"
    )

    assert path.read_bytes() == CODE.replace(b"sub", b"minus")


async def test_a_miss_shows_the_nearest_lines_with_numbers(edit, known):
    await known(CODE)

    result = await edit("calc.py", "def sub(x, y):\n    return x - y", "def sub(x, y):\n    return y")

    assert result.is_error
    assert result.model_text == (
        "old was not found in calc.py. The nearest lines are:\n"
        "5\tdef sub(a, b):\n6\t    return a - b\nCopy old exactly from there."
    )


async def test_a_miss_shows_at_most_20_lines(edit, known):
    await known(b"".join(b"line %d\n" % number for number in range(100)))

    result = await edit("calc.py", "\n".join(f"line {number}!" for number in range(50)), "x")

    assert result.model_text.count("\n") == 21


async def test_a_miss_says_when_the_new_text_is_there_already(edit, known):
    await known(CODE.replace(b"a - b", b"a + b", 1))

    result = await edit("calc.py", "def add(a, b):\n    return a - b", "def add(a, b):\n    return a + b")

    assert result.is_error
    assert result.model_text == "old is not in calc.py, but new is there already, at line 1. Go on."


async def test_a_miss_without_anything_alike_asks_to_read(edit, known):
    await known(CODE)

    assert (await edit("calc.py", "zebra", "x")).model_text.endswith(
        "nor anything like it. Read the file first."
    )


async def test_an_empty_file_is_for_write(edit, known):
    await known(b"")

    assert (await edit("calc.py", "a", "b")).model_text == "calc.py is empty. Use write to give it content."


async def test_refuses_what_a_person_changed_meanwhile(edit, known):
    path = await known(CODE)
    path.write_bytes(CODE + b"# by hand\n")

    result = await edit("calc.py", "def add(a, b):", "def plus(a, b):")

    assert result.is_error
    assert result.model_text == "calc.py changed on disk since you read it. Read it again first."
    assert path.read_bytes() == CODE + b"# by hand\n"


async def test_two_edits_in_a_row_need_no_second_reading(edit, known):
    await known(CODE)
    await edit("calc.py", "def add(a, b):", "def plus(a, b):")

    assert not (await edit("calc.py", "def plus(a, b):", "def total(a, b):")).is_error


async def test_an_exact_match_in_a_file_that_was_never_read_is_accepted(edit, workspace: Path, ledger):
    (workspace / "calc.py").write_bytes(CODE)

    assert not (await edit("calc.py", "def add(a, b):", "def plus(a, b):")).is_error
    assert ledger.originals[workspace / "calc.py"] == CODE


async def test_a_tolerant_match_in_a_file_that_was_never_read_is_refused(edit, workspace: Path):
    (workspace / "calc.py").write_bytes(CODE)

    result = await edit("calc.py", "  def add(a, b):", "  def plus(a, b):")

    assert result.is_error
    assert result.model_text.endswith("which you have not read. Read it first.")
    assert (workspace / "calc.py").read_bytes() == CODE


async def test_a_missing_file_is_an_error_with_the_closest_names(edit, workspace: Path):
    (workspace / "calc.py").write_bytes(CODE)

    result = await edit("clac.py", "a", "b")

    assert result.is_error
    assert result.model_text == "clac.py does not exist. Closest: calc.py."


@pytest.mark.parametrize("path", ["../calc.py", "src", "a.bin"])
async def test_what_cannot_be_edited_is_an_error(edit, workspace: Path, path: str):
    (workspace / "src").mkdir()
    (workspace / "a.bin").write_bytes(b"a\0")

    assert (await edit(path, "a", "b")).is_error


async def test_a_character_that_the_encoding_lacks_is_an_error(edit, known):
    path = await known("naïve = 1\n".encode("latin-1"))

    result = await edit("calc.py", "1", "'→'")

    assert result.is_error
    assert path.read_bytes() == "naïve = 1\n".encode("latin-1")


async def test_broken_bytes_elsewhere_stay_and_are_no_obstacle(edit, known):
    path = await known("größe = 1\n".encode() + b"# \xff\n")

    result = await edit("calc.py", "größe = 1", "größe = 2")

    assert path.read_bytes() == "größe = 2\n".encode() + b"# \xff\n"
    assert result.diffs[0].after == "größe = 2\n# \ufffd\n"
