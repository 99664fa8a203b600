"""The text of the input field in the person's own editor."""

import tempfile
from pathlib import Path

import pytest

from agent.core.errors import UsageError
from agent.ui.editor import edit_text


async def test_the_text_is_as_it_was_saved(tmp_path: Path):
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nprintf 'und mehr\\n' >> \"$1\"\n", encoding="utf-8")
    editor.chmod(0o755)
    assert await edit_text("schön ", [str(editor)]) == "schön und mehr"


async def test_an_editor_that_fails_leaves_the_text_alone():
    with pytest.raises(UsageError, match="false ended with status 1"):
        await edit_text("text", ["false"])


async def test_a_disk_without_room_is_an_error_that_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(UsageError, match="cannot be handed to an editor: No such file") as caught:
        await edit_text("text", ["true"])
    assert "TMPDIR" in caught.value.hint


async def test_half_a_character_does_not_stand_in_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert await edit_text("a\udcffb", ["true"]) == "a?b"
    assert not list(tmp_path.iterdir())
