"""Which files a call with several edits is about, for whoever shows it in a line."""

from collections.abc import Mapping
from typing import Any


def paths_edited(arguments: Mapping[str, Any]) -> list[str]:
    """The files of a `multi_edit`, each once. A model wrote the arguments, so they may be anything."""
    edits = arguments.get("edits")
    if not isinstance(edits, list):
        return []
    paths = [edit.get("path") for edit in edits if isinstance(edit, Mapping)]
    return list(dict.fromkeys(path for path in paths if isinstance(path, str)))
