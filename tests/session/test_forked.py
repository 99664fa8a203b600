"""Images of a copied session: its own files, and nothing that only looks like an image of a message."""

from pathlib import Path
from typing import Any

import pytest

from agent.session.forked import with_own_pictures


@pytest.fixture
def image(tmp_path: Path) -> Path:
    file = tmp_path / "first" / "pictures" / "abc.png"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"an image")
    return file


def message(file: Path | str, **more: Any) -> dict[str, Any]:
    picture = {"file": str(file), "name": "shot.png", "media_type": "image/png"}
    return {"role": "user", "text": "look", "pictures": [picture], **more}


def test_messages_and_histories_name_files_of_the_copy(tmp_path: Path, image: Path):
    copy = tmp_path / "copy"
    records = (
        message(image, type="message"),
        {"type": "history", "messages": [message(image), "torn", {"role": "assistant"}]},
    )
    first, second = with_own_pictures(records, copy)
    own = copy / "pictures" / "abc.png"
    assert first["pictures"][0]["file"] == second["messages"][0]["pictures"][0]["file"] == str(own)
    assert second["messages"][1:] == ["torn", {"role": "assistant"}]
    image.unlink()
    assert own.read_bytes() == b"an image"
    assert [path.name for path in own.parent.iterdir()] == ["abc.png"]


def test_an_image_that_is_gone_is_named_as_before(tmp_path: Path):
    record = message(tmp_path / "gone.png", type="message")
    assert with_own_pictures([record], tmp_path / "copy") == (record,)
    assert not (tmp_path / "copy").exists()


def test_what_the_model_wrote_is_no_image(tmp_path: Path, image: Path):
    call = {"id": "1", "arguments": {"role": "user", "pictures": [{"file": str(image)}]}}
    records = (
        {"type": "message", "role": "assistant", "calls": [call], "pictures": [{"file": str(image)}]},
        {"type": "tool_started", "arguments": {"pictures": [{"file": str(image)}]}},
        {"type": "message", "role": "user", "text": "", "pictures": [3, {"file": 4}]},
    )
    assert with_own_pictures(records, tmp_path / "copy") == records
    assert not (tmp_path / "copy").exists()


def test_an_image_that_cannot_be_copied_is_an_error(tmp_path: Path, image: Path):
    (tmp_path / "copy").write_text("no folder", encoding="utf-8")
    with pytest.raises(OSError, match=r"."):
        with_own_pictures([message(image)], tmp_path / "copy")
