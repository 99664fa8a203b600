"""Images and dragged files in the input field."""

from pathlib import Path

import pytest

from agent.ui.clipboard_image import command_for, save_image
from agent.ui.entry.dropped import dropped_file
from tests.fakes.fake_handle import FakeHandle
from tests.ui.rig import Rig, rest, settle, type_text

PNG = b"\x89PNG\r\n\x1a\n123"


def rig_with(tmp_path: Path, clipboard: bytes, blind: str = "") -> Rig:
    options = {"state_folder": tmp_path / "state", "read_clipboard": lambda _: clipboard}
    return Rig(handles=[FakeHandle(services={"blindness": blind})], options=options)


async def test_an_image_of_the_clipboard_is_a_placeholder_and_is_sent_as_a_mention(tmp_path: Path):
    rig = rig_with(tmp_path, PNG)
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await type_text(pilot, "see ")
        await pilot.press("ctrl+v")
        await rest(pilot)
        assert rig.app.prompt.text == "see [image 1] "
        await pilot.press("enter")
        await rest(pilot)
    (kept,) = (tmp_path / "state" / "pasted").iterdir()
    assert kept.read_bytes() == PNG
    assert rig.handle.prompts == [f"see @{kept.as_posix()} "]


async def test_an_image_that_the_model_cannot_see_is_one_line_and_nothing_else(tmp_path: Path):
    rig = rig_with(tmp_path, PNG, blind="its server says that the model cannot see images")
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        await pilot.press("ctrl+v")
        await rest(pilot)
        shown = str(rig.app.status.render())
        assert "stays out: its server says that the model cannot see images" in shown
        assert rig.app.prompt.text == ""


async def test_without_an_image_what_was_copied_in_here_is_pasted(tmp_path: Path):
    rig = rig_with(tmp_path, b"")
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        rig.app.copy_to_clipboard("earlier words")
        await pilot.press("ctrl+v")
        await rest(pilot)
        assert rig.app.prompt.text == "earlier words"


async def test_a_dragged_image_becomes_a_mention(tmp_path: Path):
    (tmp_path / "my shot.png").write_bytes(PNG)
    rig = rig_with(tmp_path, b"")
    async with rig.app.run_test() as pilot:
        await settle(pilot, rig)
        rig.app.prompt.take_paste(f"{tmp_path}/my\\ shot.png")
        await rest(pilot)
        assert rig.app.prompt.text == f'@"{tmp_path}/my shot.png" '


@pytest.mark.parametrize(
    ("pasted", "mention"),
    [
        ("{work}/src/a.py", "@src/a.py "),
        ("'{work}/src/a.py'\n", "@src/a.py "),
        ("file://{work}/src/my%20notes.txt", '@"src/my notes.txt" '),
        ("{work}/src/my\\ notes.txt ", '@"src/my notes.txt" '),
        ("{work}", ""),
        ("{work}/gone.py", ""),
        ("/etc/hostname", ""),
        ("src/a.py", ""),
        ("{work}/src/a.py\n{work}/src/b.py", ""),
        ("/" + "x" * 5000, ""),
        ("\0/a.png", ""),
        ("/a\0.png", ""),
        ("", ""),
    ],
)
def test_only_paths_of_files_are_mentions(tmp_path: Path, pasted: str, mention: str):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").touch()
    (tmp_path / "src" / "my notes.txt").touch()
    assert dropped_file(pasted.format(work=tmp_path), tmp_path) == mention


@pytest.mark.parametrize(
    ("environment", "platform", "program"),
    [
        ({"WAYLAND_DISPLAY": "wayland-0", "DISPLAY": ":0"}, "linux", "wl-paste"),
        ({"DISPLAY": ":0"}, "linux", "xclip"),
        ({}, "darwin", "pngpaste"),
        ({}, "linux", ""),
    ],
)
def test_the_clipboard_is_read_by_the_program_of_the_desktop(
    environment: dict[str, str], platform: str, program: str
):
    command = command_for(environment, lambda name: f"/usr/bin/{name}", platform)
    assert "".join(command[:1]) == program


def test_only_the_last_pasted_images_are_kept(tmp_path: Path):
    for number in range(25):
        assert save_image(PNG, tmp_path, f"{number:02}")
    assert len(list(tmp_path.iterdir())) == 20
