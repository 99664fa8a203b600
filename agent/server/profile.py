"""A server profile: which model, which draft, how it is served. One TOML file each, see docs/profiles.md.

The words are this project's own, not those of one engine: each engine translates them into what it
understands (`agent.server.embedded` into llama.cpp's parameters, `agent.server.argv` into command lines).

Every run loads a profile, and each class here costs about a millisecond of it: single values are keys of
`Profile`, a table is only what has a reason to be one.
"""

from typing import Annotated, Any, Literal, get_args

from pydantic import Field, Strict, model_validator

from agent.server.draft_room import with_room_for_drafts
from agent.server.model_file import ModelFile, Table

Engine = Literal["embedded", "llama-server", "remote", "vllm", "sglang"]
DialectName = Literal["bee-0.3", "bee-0.4", "llama.cpp", "ik"]
ContextKind = Literal[
    "ngram-simple",
    "ngram-mod",
    "ngram-map-k",
    "ngram-map-k4v",
    "ngram-cache",
    "suffix",
    "copyspec",
    "recycle",
]
SpeculationKind = Literal["none", "draft", "dflash", "mtp", "eagle3", "dspark", ContextKind]
KINDS_WITH_A_DRAFT_MODEL: tuple[SpeculationKind, ...] = ("draft", "dflash", "eagle3", "dspark")
KINDS_WITH_A_MODEL: tuple[SpeculationKind, ...] = (*KINDS_WITH_A_DRAFT_MODEL, "mtp")
UpstreamKvType = Literal["f32", "f16", "bf16", "q8_0", "q5_0", "q5_1", "q4_0", "q4_1", "iq4_nl"]
ForkKvType = Literal[
    "q6_0", "q6_1", "q3_0", "q3_1", "q2_0", "q2_1", "q8_KV",
    "turbo2", "turbo3", "turbo4", "turbo2_tcq", "turbo3_tcq", "turbo4_tcq",
    "kvarn2", "kvarn3", "kvarn4", "kvarn5", "kvarn6", "kvarn8",
]  # fmt: skip
KvType = Literal[UpstreamKvType, ForkKvType]
Probability = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0, le=1_000_000)]
Words = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Strict(False)]
Layers = Literal["auto", "all"] | Annotated[int, Field(ge=0, le=10_000)]
Text = Annotated[str, Field(min_length=1)]

ENGINES_WITH_THEIR_OWN_MODELS: tuple[Engine, ...] = ("vllm", "sglang")
_STARTED_BY_HAND: tuple[Engine, ...] = ("llama-server", "vllm", "sglang")
NOT_EMBEDDED = (
    "api_key_file", "chat_template", "chat_template_file", "cors_origins", "cpu_moe_layers", "devices",
    "draft_model", "extra_args", "host", "log_file", "log_prefix", "log_timestamps", "log_verbosity",
    "main_gpu", "metrics", "model", "reasoning_budget", "reasoning_format", "slot_save_path",
    "slot_similarity", "split_mode", "tensor_split",
)  # fmt: skip
"""What the server inside this program has no use for; a key there would silently do nothing."""
SPECULATION_NOT_EMBEDDED = ("adaptive", "branch_budget", "cross_context", "draft_context", "draft_devices")


def is_every_interface(host: str) -> bool:
    """Whether a server bound to `host` can be reached from other machines over any of its addresses."""
    import ipaddress

    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def web_address(host: str, port: int) -> str:
    """Where a server that listens there is found from this machine."""
    host = "127.0.0.1" if is_every_interface(host) else host
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Speculation(Table):
    """How tokens are proposed before the model checks them. `None` leaves a number to the engine.

    `kind` may be given as a list: what drafts with a model becomes `kind`, the others `also`.

    `n_max`, `n_min` and `p_min` are for draft models and, without `p_min`, for ngram-mod where it is the
    only kind; beside a model it has `ngram_n_max` and `ngram_n_min`. `n_match` is for ngram-mod; `size_n`,
    `size_m` and `min_hits` are for the other n-gram kinds.

    `cross_context` is the window in tokens of the target's states that a DFlash drafter sees,
    `draft_context` the context of the draft model itself, `adaptive` how the length of drafts follows
    what they gain, `branch_budget` how many tokens a tree of drafts may have besides its main path.
    """

    kind: SpeculationKind = "none"
    also: Annotated[tuple[ContextKind, ...], Strict(False)] = ()
    n_max: Count | None = None
    n_min: Count | None = None
    p_min: Probability | None = None
    n_match: Count | None = None
    size_n: Count | None = None
    size_m: Count | None = None
    min_hits: Count | None = None
    ngram_n_max: Count | None = None
    ngram_n_min: Count | None = None
    cross_context: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    draft_context: Count | None = None
    draft_kv_type_k: KvType | None = None
    draft_kv_type_v: KvType | None = None
    draft_gpu_layers: Layers | None = None
    draft_devices: Words = ()
    adaptive: Literal["profit", "fringe", "off"] | None = None
    branch_budget: Count | None = None

    @model_validator(mode="before")
    @classmethod
    def _split_combination(cls, table: Any) -> Any:
        kinds = table.get("kind") if isinstance(table, dict) else None
        if not isinstance(kinds, list | tuple):
            return table
        if not kinds or len(set(map(str, kinds))) < len(kinds):
            raise ValueError("kind must name each kind once")
        if "also" in table:
            raise ValueError("give all kinds in the list, or the others in also")
        main = next((kind for kind in kinds if kind in KINDS_WITH_A_MODEL), kinds[0])
        return {**table, "kind": main, "also": [kind for kind in kinds if kind != main]}

    @model_validator(mode="after")
    def _combination_makes_sense(self) -> "Speculation":
        if self.also and self.kind == "none":
            raise ValueError('kind = "none" cannot be combined')
        if self.kind in self.also or len(set(self.also)) < len(self.also):
            raise ValueError("kind must name each kind once")
        return self

    @property
    def kinds(self) -> tuple[SpeculationKind, ...]:
        """All kinds, that with a model first; empty where nothing is drafted."""
        return () if self.kind == "none" else (self.kind, *self.also)


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
    `edit_form` is how the model changes files: `replace` text in them, apply a `patch`, write `whole` ones.
    `subagents` offers the tool for them; None leaves it to what the server has room for. `outline` offers the
    map of the sources; None leaves it to the size of the context.
    """

    attach_mentioned_files: bool = True
    max_reply_tokens: Annotated[int, Field(gt=0)] | None = None
    attempts: Annotated[int, Field(ge=1, le=20)] = 1
    attempt_steps: Annotated[int, Field(ge=1, le=1000)] = 12
    retry_temperature: Annotated[float, Field(ge=0, le=5)] | None = None
    guided: bool = False
    edit_form: Literal["replace", "patch", "whole"] = "replace"
    subagents: bool | None = None
    outline: bool | None = None


class Profile(Table):
    """A whole profile. Sizes in tokens unless said otherwise.

    `card` is the model card that completed it, `auto` where none is known, see `agent.server.cards`.
    `context` is what one conversation (one slot) gets. `threads`, `port`: 0 means automatic.
    `cache_ram_mib` is the memory for prompts that lost their slot, in MiB. `None` leaves it to the engine.
    `batch_seconds` is how long one batch may take, `batch` is then the largest; 0 = `batch` as it is.
    docs/profiles.md explains every key; a server that does not know one is told before it starts, see
    `agent.server.argv`.
    """

    name: Text
    description: str = ""
    engine: Engine = "embedded"
    card: Text = "auto"
    dialect: DialectName | None = None
    url: str | None = None
    api_key_env: str | None = None
    model: Text | None = None
    draft_model: Text | None = None
    target: ModelFile | None = None
    draft: ModelFile | None = None
    context: Annotated[int, Field(ge=256, le=4_194_304)] = 8192
    slots: Annotated[int, Field(ge=1, le=64)] = 1
    unified_kv: bool = False
    batch: Annotated[int, Field(ge=1, le=65_536)] = 2048
    ubatch: Annotated[int, Field(ge=1, le=65_536)] = 512
    batch_seconds: Annotated[float, Field(ge=0, le=60)] = 0.0
    kv_type_k: KvType = "f16"
    kv_type_v: KvType = "f16"
    flash_attention: Literal["auto", "on", "off"] = "auto"
    gpu_layers: Layers = "auto"
    cpu_moe_layers: Literal["all"] | Annotated[int, Field(ge=1, le=10_000)] | None = None
    devices: Words = ()
    split_mode: Literal["none", "layer", "row", "tensor", "graph"] | None = None
    tensor_split: Annotated[tuple[Annotated[float, Field(ge=0, le=1e6)], ...], Strict(False)] = ()
    main_gpu: Annotated[int, Field(ge=0, le=1024)] | None = None
    threads: Annotated[int, Field(ge=0, le=4096)] = 0
    load_mode: Literal["auto", "none", "mmap", "mlock", "mmap+mlock", "dio"] = "auto"
    no_host: bool = False
    cache_ram_mib: Annotated[int, Field(ge=0, le=1_048_576)] = 1024
    checkpoints: Count | None = None
    checkpoint_step: Count | None = None
    cache_reuse: Count | None = None
    slot_similarity: Probability | None = None
    swa_full: bool = False
    jinja: bool = True
    chat_template: Text | None = None
    chat_template_file: Text | None = None
    reasoning: Literal["on", "off", "auto"] | None = None
    reasoning_budget: Annotated[int, Field(ge=-1, le=4_194_304)] | None = None
    reasoning_format: Literal["none", "auto", "deepseek", "deepseek-legacy"] | None = None
    preserve_reasoning: bool | None = None
    host: Text = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 0
    api_key_file: Text | None = None
    cors_origins: Text | None = None
    slot_save_path: Text | None = None
    metrics: bool = True
    log_timestamps: bool = True
    log_prefix: bool = True
    log_file: Text | None = None
    log_verbosity: Annotated[int, Field(ge=0, le=9)] | None = None
    extra_args: Words = ()
    template_arguments: dict[str, Any] = Field(default_factory=dict)
    speculation: Speculation = Field(default_factory=Speculation)
    sampling: Sampling = Field(default_factory=Sampling)
    tools: Tools = Field(default_factory=Tools)
    model_card: ModelCard = Field(default_factory=ModelCard)

    @model_validator(mode="before")
    @classmethod
    def _know_the_address(cls, table: Any) -> Any:
        """A server that the person starts by the printed command is found where the profile puts it."""
        if not isinstance(table, dict) or table.get("url") or table.get("engine") not in _STARTED_BY_HAND:
            return table
        port, host = table.get("port"), table.get("host", "127.0.0.1")
        if not isinstance(port, int) or not isinstance(host, str) or not port:
            return table
        return {**table, "url": web_address(host, port)}

    @model_validator(mode="before")
    @classmethod
    def _drafts_fit_into_a_batch(cls, table: Any) -> Any:
        return with_room_for_drafts(table) if isinstance(table, dict) else table

    @model_validator(mode="after")
    def _is_complete(self) -> "Profile":
        if self.engine == "remote" and not self.url:
            raise ValueError("the remote engine needs url, the address of a running server")
        if self.engine not in ("embedded", "llama-server"):
            return self
        if self.target is None:
            raise ValueError(f"the {self.engine} engine needs a [target] table")
        if self.speculation.kind in KINDS_WITH_A_DRAFT_MODEL and self.draft is None:
            raise ValueError(f'speculation.kind = "{self.speculation.kind}" needs a [draft] table')
        if self.engine == "embedded":
            self._check_embedded()
        return self

    def _check_embedded(self) -> None:
        for name, file in (("target", self.target), ("draft", self.draft)):
            if file and not file.is_checked and any(source.kind != "file" for source in file.sources):
                raise ValueError(f"{name}: sha256 and bytes are needed to check what is downloaded")
        speculation = self.speculation
        useless = [key for key in NOT_EMBEDDED if key in self.model_fields_set]
        useless += [
            f"speculation.{key}" for key in SPECULATION_NOT_EMBEDDED if key in speculation.model_fields_set
        ]
        if useless:
            raise ValueError(f'{useless[0]} is not for the embedded engine, only for engine = "llama-server"')
        types = (self.kv_type_k, self.kv_type_v, speculation.draft_kv_type_k, speculation.draft_kv_type_v)
        for kv_type in types:
            if kv_type is not None and kv_type not in get_args(UpstreamKvType):
                known = ", ".join(get_args(UpstreamKvType))
                raise ValueError(f"the embedded engine does not know the KV type {kv_type}, only {known}")
        for kind in speculation.kinds:
            if kind in ("suffix", "copyspec", "recycle"):
                raise ValueError(f"the embedded engine does not know the speculation kind {kind}")

    @property
    def uses_draft_model(self) -> bool:
        """Whether a second model file is loaded. For mtp it may be, most targets bring those layers along."""
        kind = self.speculation.kind
        return kind in KINDS_WITH_A_DRAFT_MODEL or (kind == "mtp" and self.draft is not None)

    @property
    def model_files(self) -> tuple[ModelFile, ...]:
        """The files that have to be there before the server can start, target first."""
        if self.engine in ENGINES_WITH_THEIR_OWN_MODELS:
            return ()
        files = [self.target] if self.target else []
        if self.draft and self.uses_draft_model:
            files.append(self.draft)
        return tuple(files)
