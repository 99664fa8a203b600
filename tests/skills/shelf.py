"""Skill folders for tests."""

from pathlib import Path


def write_skill(folder: Path, text: str | bytes | None = None, *, description: str = "Does it.") -> Path:
    """A folder with a `SKILL.md`; by default a good one that is named like the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    if text is None:
        text = f"---\nname: {folder.name}\ndescription: {description}\n---\nBody of {folder.name}.\n"
    content = text.encode() if isinstance(text, str) else text
    (folder / "SKILL.md").write_bytes(content)
    return folder
