"""What a file is besides its content stays; what is no text file of one's own is refused."""

import asyncio
import os
import socket
import stat
from pathlib import Path

import pytest

from agent.core.tool import ToolContext, ToolResult
from tools._text.files import replace_file
from tools._text.paths import RefusalError
from tools.edit import EditParams, EditTool
from tools.patch import PatchParams, PatchTool
from tools.read import ReadParams, ReadTool
from tools.write import WriteParams, WriteTool


@pytest.fixture
def edit(context: ToolContext):
    async def run(path: str, old: str = "one", new: str = "two", **options: bool) -> ToolResult:
        return await EditTool().run(EditParams(path=path, old=old, new=new, **options), context)

    return run


async def test_hard_links_stay_together(edit, workspace: Path):
    (workspace / "a.txt").write_text("one\n" * 3, "utf-8")
    os.link(workspace / "a.txt", workspace / "b.txt")

    await edit("a.txt", "one\none\none", "2")

    assert (workspace / "b.txt").read_text("utf-8") == "2\n"
    assert (workspace / "a.txt").samefile(workspace / "b.txt")
    assert sorted(path.name for path in workspace.iterdir()) == ["a.txt", "b.txt"]


async def test_a_symbolic_link_stays_and_leads_to_the_new_content(edit, workspace: Path):
    (workspace / "real.txt").write_text("one\n", "utf-8")
    (workspace / "link.txt").symlink_to("real.txt")

    assert (await edit("link.txt")).model_text == "Edited real.txt at line 1."
    assert (workspace / "link.txt").readlink() == Path("real.txt")
    assert (workspace / "real.txt").read_text("utf-8") == "two\n"


@pytest.mark.parametrize("mode", [0o600, 0o755, 0o4755, 0o664])
async def test_the_mode_stays(edit, workspace: Path, mode: int):
    path = workspace / "a.sh"
    path.write_text("one\n", "utf-8")
    path.chmod(mode)

    await edit("a.sh")

    assert stat.S_IMODE(path.stat().st_mode) == mode


async def test_extended_attributes_stay(edit, workspace: Path):
    path = workspace / "a.txt"
    path.write_text("one\n", "utf-8")
    os.setxattr(path, "user.origin", b"me")

    await edit("a.txt")

    assert os.getxattr(path, "user.origin") == b"me"


async def test_the_owner_stays(edit, workspace: Path):
    path = workspace / "a.txt"
    path.write_text("one\n", "utf-8")
    owner = (os.geteuid() or 1234, os.getegid())  # only root can give a file away
    os.chown(path, *owner)

    await edit("a.txt")

    assert (path.stat().st_uid, path.stat().st_gid) == owner


async def test_a_file_without_write_permission_is_left_alone(edit, workspace: Path):
    path = workspace / "a.txt"
    path.write_text("one\n", "utf-8")
    path.chmod(0o444)

    result = await edit("a.txt")

    assert (result.is_error, result.model_text) == (True, "a.txt is write-protected. Leave it as it is.")
    assert path.read_text("utf-8") == "one\n"


@pytest.fixture
def special(workspace: Path):
    """What looks like a file and is none."""
    (workspace / "folder").mkdir()
    os.mkfifo(workspace / "fifo")
    (workspace / "null").symlink_to("/dev/null")
    (workspace / "mem").symlink_to("/proc/self/mem")
    (workspace / "loop").symlink_to("loop")
    (workspace / "dangling").symlink_to("folder/nothing/here")
    with socket.socket(socket.AF_UNIX) as listening:
        here = Path.cwd()
        os.chdir(workspace)  # the name of a socket may only have about a hundred characters
        try:
            listening.bind("socket")
        finally:
            os.chdir(here)
        yield


@pytest.mark.usefixtures("special")
@pytest.mark.parametrize(
    "name", ["folder", "fifo", "null", "mem", "loop", "dangling", "socket", "/proc/kmsg"]
)
async def test_what_is_no_file_is_refused_in_one_line_without_waiting(context: ToolContext, name: str):
    patch = f"*** Begin Patch\n*** Update File: {name}\n-one\n+two\n*** End Patch"
    async with asyncio.timeout(30):
        results = [
            await EditTool().run(EditParams(path=name, old="one", new="two"), context),
            await PatchTool().run(PatchParams(input=patch), context),
        ]
        if name not in ("dangling",):
            results.append(await WriteTool().run(WriteParams(path=name, content="x"), context))
        if name != "folder":
            results.append(await ReadTool().run(ReadParams(path=name), context))

    for result in results:
        assert result.is_error
        assert "\n" not in result.model_text


async def test_files_of_the_system_are_refused_where_they_are_in_the_workspace(context: ToolContext):
    from dataclasses import replace

    everything = replace(context, workspace=Path("/"))

    result = await EditTool().run(EditParams(path="/proc/cpuinfo", old="a", new="b"), everything)

    assert result.model_text.startswith("proc/cpuinfo belongs to the system and is no real file.")


def test_a_file_that_changes_between_reading_and_writing_is_not_overwritten(workspace: Path):
    path = workspace / "a.txt"
    path.write_text("one\n", "utf-8")
    seen = path.stat()
    path.write_text("a person's own words\n", "utf-8")

    with pytest.raises(RefusalError, match="changed on disk just now"):
        replace_file(workspace, path, b"two\n", seen)

    assert path.read_text("utf-8") == "a person's own words\n"


def test_a_new_file_that_somebody_else_made_meanwhile_is_not_overwritten(
    workspace: Path, context: ToolContext
):
    from tools._edit.change import Change, carry_out, diff_of

    change = Change(
        path=workspace / "a.txt",
        before=None,
        after=b"two\n",
        status=None,
        diff=diff_of("a.txt", None, "two\n"),
        said="",
    )
    (workspace / "a.txt").write_text("mine\n", "utf-8")

    with pytest.raises(RefusalError, match="made just now by somebody else"):
        carry_out((change,), context)

    assert (workspace / "a.txt").read_text("utf-8") == "mine\n"


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
async def test_a_long_file_and_a_long_line_are_edited(edit, workspace: Path, end: bytes):
    filler = b"value = compute(1)" + end
    data = filler * 400_000 + b"x" * 1_000_000 + b"zebra" + b"y" * 1_000_000
    (workspace / "a.txt").write_bytes(data)

    result = await edit("a.txt", "zebra", "lion")

    assert not result.is_error
    assert (workspace / "a.txt").read_bytes() == data.replace(b"zebra", b"lion")
    assert len(result.diffs[0].before or "") < 5000


@pytest.mark.slow
async def test_fifty_megabytes_are_edited_also_where_white_space_differs(edit, workspace: Path):
    lines = [b"value = compute(%d)  " % number for number in range(2_250_000)]
    data = b"\r\n".join([*lines, b"    zebra = 1", b"    lion = 2"])
    assert len(data) > 50_000_000
    (workspace / "a.txt").write_bytes(data)

    exact = await edit("a.txt", "zebra = 1", "zebra = 3")
    loose = await edit("a.txt", "  zebra = 3\n  lion = 2", "  zebra = 4\n  lion = 2")

    assert not exact.is_error, exact.model_text
    assert not loose.is_error, loose.model_text
    assert (workspace / "a.txt").read_bytes() == data.replace(b"zebra = 1", b"zebra = 4")


async def test_the_nearest_lines_of_a_long_file_are_found(edit, workspace: Path):
    lines = [f"value_{number} = compute({number})" for number in range(150_000)]
    lines[123_456] = "    total = gather(zebra, price)"
    (workspace / "a.txt").write_text("\n".join(lines), "utf-8")

    result = await edit("a.txt", "total = collect(zebra, price)", "x")

    assert "123457\t    total = gather(zebra, price)" in result.model_text
