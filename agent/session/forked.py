"""What a copy of a session needs of its own: the images of its messages, files beside the record."""

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agent.core.private_folder import make_private_folder

PICTURES_NAME = "pictures"
"""Folder of a session with the images of its messages."""

Record = Mapping[str, Any]


def with_own_pictures(records: Iterable[Record], folder: Path) -> tuple[Record, ...]:
    """The records for a copy in `folder`, with images that stay when the first session is deleted.

    Images that are gone already are named as before.

    Raises:
        OSError: one cannot be copied.
    """
    return tuple(_record_for(record, folder / PICTURES_NAME) for record in records)


def _record_for(record: Record, pictures: Path) -> Record:
    if isinstance(record.get("messages"), list):
        messages = [
            _message_for(message, pictures) if isinstance(message, dict) else message
            for message in record["messages"]
        ]
        return {**record, "messages": messages}
    return _message_for(record, pictures)


def _message_for(message: Record, pictures: Path) -> Record:
    if message.get("role") != "user" or not isinstance(message.get("pictures"), list):
        return message
    own = [
        {**one, "file": str(_own(Path(one["file"]), pictures))}
        if isinstance(one, dict) and isinstance(one.get("file"), str)
        else one
        for one in message["pictures"]
    ]
    return {**message, "pictures": own}


def _own(file: Path, pictures: Path) -> Path:
    """The file among the images of the copy. Its name comes from its content, so it is never another one."""
    target = pictures / file.name
    if not file.is_file() or target.exists():
        return target if target.exists() else file
    make_private_folder(pictures)
    temporary = pictures / f".{file.name}.{os.urandom(4).hex()}"
    try:
        try:
            os.link(file, temporary)  # they are never changed, so one content is enough
        except OSError:
            shutil.copyfile(file, temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return target
