"""`apply_patch`: several files by one patch, all of it or nothing."""

import stat
import threading
from pathlib import Path

import pytest

from agent.core.tool import ToolContext, ToolResult
from tests.tools.ledger import MemoryLedger
from tools.patch import PatchParams, PatchTool
from tools.read import ReadParams, ReadTool

CODE = "import os\n\n\ndef add(a, b):\n    return a - b\n\n\ndef sub(a, b):\n    return a - b\n"


@pytest.fixture
def tool() -> PatchTool:
    return PatchTool()


@pytest.fixture
def patch(tool: PatchTool, context: ToolContext):
    async def run(*lines: str) -> ToolResult:
        text = "\n".join(["*** Begin Patch", *lines, "*** End Patch"])
        return await tool.run(PatchParams(input=text), context)

    return run


@pytest.fixture
def known(workspace: Path, context: ToolContext):
    """Puts a file there and lets the model read it."""

    async def create(name: str, content: str | bytes) -> Path:
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        await ReadTool().run(ReadParams(path=name), context)
        return path

    return create


async def test_updates_adds_and_deletes_files_at_once(patch, known, workspace: Path, ledger: MemoryLedger):
    calc, old = await known("calc.py", CODE), await known("old.py", "x = 1\n")

    result = await patch(
        "*** Update File: calc.py",
        "@@ def add(a, b):",
        "-    return a - b",
        "+    return a + b",
        "*** Add File: pkg/new.py",
        "+y = 2",
        "+",
        "*** Delete File: old.py",
    )

    assert not result.is_error
    assert result.model_text == "Edited calc.py at line 5.\nCreated pkg/new.py, 2 lines.\nDeleted old.py."
    assert calc.read_text("utf-8") == CODE.replace("a - b", "a + b", 1)
    assert (workspace / "pkg/new.py").read_text("utf-8") == "y = 2\n\n"
    assert not old.exists()
    assert ledger.originals == {calc: CODE.encode(), workspace / "pkg/new.py": None, old: b"x = 1\n"}
    assert [(diff.path, diff.before is None, diff.after is None) for diff in result.diffs] == [
        ("calc.py", False, False),
        ("pkg/new.py", True, False),
        ("old.py", False, True),
    ]


async def test_one_change_that_does_not_fit_leaves_all_files_as_they_are(patch, known, workspace: Path):
    one, two = await known("one.py", "a = 1\n"), await known("two.py", "b = 1\n")

    result = await patch(
        "*** Update File: one.py", "-a = 1", "+a = 2", "*** Update File: two.py", "-c = 1", "+c = 2"
    )

    assert result.is_error
    assert (one.read_bytes(), two.read_bytes()) == (b"a = 1\n", b"b = 1\n")


async def test_a_place_that_cannot_be_written_takes_the_others_back(
    patch, known, workspace: Path, ledger: MemoryLedger
):
    one, two = await known("one.py", "a = 1\n"), await known("two.py", "b = 1\n")
    gone = await known("gone.sh", "ls\n")
    gone.chmod(0o755)
    two.chmod(0o444)

    result = await patch(
        "*** Update File: one.py",
        "-a = 1",
        "+a = 2",
        "*** Add File: three.py",
        "+c = 1",
        "*** Delete File: gone.sh",
        "*** Update File: two.py",
        "-b = 1",
        "+b = 2",
    )

    assert result.model_text == "two.py is write-protected. Leave it as it is. No file was changed."
    assert (one.read_bytes(), two.read_bytes(), gone.read_bytes()) == (b"a = 1\n", b"b = 1\n", b"ls\n")
    assert stat.S_IMODE(gone.stat().st_mode) == 0o755
    assert not (workspace / "three.py").exists()
    assert not ledger.is_stale(one)


async def test_several_changes_of_one_file_follow_each_other(patch, known):
    path = await known("calc.py", CODE)

    await patch(
        "*** Update File: calc.py",
        "-import os",
        "+import sys",
        "@@",
        " def sub(a, b):",
        "-    return a - b",
        "+    return b - a",
    )

    assert path.read_text("utf-8") == "import sys" + CODE.removeprefix("import os").replace(
        "sub(a, b):\n    return a - b", "sub(a, b):\n    return b - a"
    )


async def test_lines_in_two_places_are_refused_with_both(patch, known):
    path = await known("calc.py", CODE)

    result = await patch("*** Update File: calc.py", "-    return a - b", "+    return 0")

    assert result.is_error
    assert result.model_text.startswith("The old lines of change 1 are 2 times in calc.py, at lines 5, 9.")
    assert path.read_text("utf-8") == CODE


async def test_the_end_of_the_file_can_be_the_place(patch, known):
    path = await known("calc.py", CODE)

    await patch("*** Update File: calc.py", "-    return a - b", "+    return 0", "*** End of File")

    assert path.read_text("utf-8") == CODE.removesuffix("    return a - b\n") + "    return 0\n"


async def test_lines_are_added_after_the_place_that_is_named_or_at_the_end(patch, known):
    path = await known("calc.py", CODE)

    await patch("*** Update File: calc.py", "@@ def add(a, b):", "+    # sum", "@@", "+", "+# end")

    assert path.read_text("utf-8") == CODE.replace("(a, b):\n", "(a, b):\n    # sum\n", 1) + "\n# end\n"


async def test_a_line_can_become_blank_or_go(patch, known):
    path = await known("a.txt", "one\ntwo\nthree\n")

    await patch("*** Update File: a.txt", "-one", "+", "-two", " three")

    assert path.read_text("utf-8") == "\nthree\n"


async def test_a_move_keeps_mode_and_bytes(patch, known, workspace: Path):
    path = await known("a.sh", b"#!/bin/sh\r\necho 1\r\n")
    path.chmod(0o755)

    result = await patch("*** Update File: a.sh", "*** Move to: bin/b.sh", "-echo 1", "+echo 2")

    assert result.model_text == "Edited a.sh at line 2.\nIt is bin/b.sh now."
    assert not path.exists()
    assert (workspace / "bin/b.sh").read_bytes() == b"#!/bin/sh\r\necho 2\r\n"
    assert stat.S_IMODE((workspace / "bin/b.sh").stat().st_mode) == 0o755


async def test_white_space_may_differ_in_a_file_that_was_read(patch, known):
    path = await known("calc.py", CODE)

    await patch("*** Update File: calc.py", "@@ def add(a, b):", "-  return a - b", "+  return a + b")

    assert path.read_text("utf-8") == CODE.replace("a - b", "a + b", 1)


async def test_a_file_that_was_not_read_has_to_fit_exactly(patch, workspace: Path):
    (workspace / "a.py").write_text("    x = 1\n", "utf-8")

    assert "which you have not read" in (await patch("*** Update File: a.py", "-x = 1", "+x = 2")).model_text
    assert not (await patch("*** Update File: a.py", "-    x = 1", "+    x = 2")).is_error


async def test_line_ends_and_encoding_stay(patch, known):
    path = await known("a.txt", "größe = 1\r\nb = 2\r\n".encode("latin-1"))

    await patch("*** Update File: a.txt", "-größe = 1", "+größe = 2", "+c = ü")

    assert path.read_bytes() == "größe = 2\r\nc = ü\r\nb = 2\r\n".encode("latin-1")


async def test_a_shell_here_document_and_a_fence_around_it_are_ignored(tool: PatchTool, known, context):
    path = await known("a.py", "x = 1\n")
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-x = 1\n+x = 2\n*** End Patch\n"
    text = f"```\napply_patch <<'EOF'\n{patch}EOF\n```"

    assert not (await tool.run(PatchParams(input=text), context)).is_error
    assert path.read_text("utf-8") == "x = 2\n"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ((), "The patch names no file."),
        (("hello",), "Line 2 of the patch is no part of one: 'hello'."),
        (("*** Update File: a.py", "x = 1"), "Line 3 of the patch is no part of one: 'x = 1'."),
        (("*** Update File: a.py", " x = 1"), "The patch changes nothing in a.py."),
        (("*** Add File: b.py", "x"), "Line 3 of the patch is no part of one: 'x'."),
        (("*** Add File: a.py", "+x"), "a.py exists already. Use *** Update File for it."),
        (("*** Delete File: b.py",), "b.py does not exist."),
        (("*** Delete File: ../b.py",), "../b.py is outside the workspace."),
        (("*** Update File: a.py", "*** Move to: c.py", "-x = 1", "+x = 2"), "c.py exists already."),
        (("*** Delete File: link.py",), "A link leads to c.py."),
        (("*** Delete File: a.py", "*** Delete File: a.py"), "a.py is in the patch twice."),
        (
            ("*** Update File: a.py", "-y = 1", "+y = 2"),
            "the text of change 1 (its lines with a space or -) was",
        ),
    ],
)
async def test_a_patch_that_cannot_be_applied_says_why(patch, known, workspace: Path, lines, said: str):
    await known("a.py", "x = 1\n")
    target = await known("c.py", "z = 1\n")
    (workspace / "link.py").symlink_to(target)

    result = await patch(*lines)

    assert result.is_error
    assert result.model_text.startswith(said)
    assert sorted(path.name for path in workspace.iterdir()) == ["a.py", "c.py", "link.py"]


async def test_a_file_that_a_person_changed_meanwhile_is_refused(patch, known):
    path = await known("a.py", "x = 1\n")
    path.write_text("x = 1\n# mine\n", "utf-8")

    result = await patch("*** Update File: a.py", "-x = 1", "+x = 2")

    assert result.model_text == "a.py changed on disk since you read it. Read it again first."


async def test_the_third_time_the_same_patch_is_blocked(patch, known):
    await known("a.py", "x = 1\n")
    said = [(await patch("*** Update File: a.py", "-x = 3", "+x = 2")).model_text for _ in range(3)]

    assert said[0] != said[1]
    assert said[1].startswith("The same edit failed before")
    assert said[2].startswith("Blocked:")


async def test_the_preview_is_what_is_then_done(tool: PatchTool, known, context: ToolContext):
    path = await known("a.py", "x = 1\n")
    params = PatchParams(input="*** Begin Patch\n*** Update File: a.py\n-x = 1\n+x = 2\n*** End Patch")

    before = tool.preview(params, context)

    assert path.read_text("utf-8") == "x = 1\n"
    assert await tool.run(params, context) == before


async def test_where_a_patch_fits_is_found_beside_the_event_loop(patch, known, ledger: MemoryLedger):
    """A file of 20 MB takes more than a second."""
    path = await known("a.txt", "one\n")
    ledger.threads.clear()
    result = await patch("*** Update File: a.txt", "@@", "-one", "+two")
    assert (result.is_error, path.read_text("utf-8")) == (False, "two\n")
    assert ledger.threads - {threading.current_thread()}


def test_the_gate_judges_it_as_an_edit_of_each_file(tool: PatchTool):
    lines = ("*** Update File: a.py", "*** Move to: ../b.py", "-x", "+y", "*** Delete File: c.py")
    text = "\n".join(lines)

    meant = tool.acts_as(PatchParams(input=text))

    assert isinstance(meant, tuple)
    assert (meant[0].name, meant[0].access) == ("edit", "write")
    assert meant[1] == {"paths": ["a.py", "../b.py", "c.py"]}
