"""What the real engine says about its memory: measured now, or recorded in `cases/engine_memory.json`.

Each measurement starts the engine in a process of its own, without a request unless one is needed to
make the engine reserve everything, and takes a second or two. To record again:

    python -m tests.server.engine_memory MODEL.gguf ... (a draft after the model it is for: TARGET+DRAFT)
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from agent.server.fit import MIB, Estimate, ServerSettings
from agent.server.gguf import read_header
from agent.server.gguf_types import GgufArray, GgufHeader, Tensor
from tests.server import gguf_models

RECORD = Path(__file__).parent / "cases" / "engine_memory.json"
_BUFFER = re.compile(r"(model|KV|RS|compute) buffer size =\s+([\d.]+) MiB")
ALLOWED = 0.10
_LIMIT_SECONDS = 60
_ENGINE = r"""
import json, os, sys, urllib.request
os.environ["GGML_NO_BACKTRACE"] = "1"
import xllamacpp as engine
spec = json.loads(sys.argv[1])
params = engine.CommonParams()
params.model.path = spec["model"]
params.n_parallel, params.n_ctx = spec["slots"], spec["context"] * spec["slots"]
params.n_batch, params.n_ubatch = spec["batch"], spec["ubatch"]
params.cache_type_k = engine.ggml_type["GGML_TYPE_" + spec["kv_type_k"].upper()]
params.cache_type_v = engine.ggml_type["GGML_TYPE_" + spec["kv_type_v"].upper()]
flash = "AUTO" if spec["flash_attention"] else "DISABLED"
params.flash_attn_type = engine.llama_flash_attn_type["LLAMA_FLASH_ATTN_TYPE_" + flash]
params.kv_unified, params.swa_full = spec["unified_kv"], spec["full_window_cache"]
params.warmup, params.fit_params, params.offline, params.cache_ram_mib = False, False, True, 0
params.verbosity, params.hostnames, params.port = 4, ["127.0.0.1"], 0
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
kinds = {"draft": "DRAFT_SIMPLE", "dflash": "DRAFT_DFLASH", "mtp": "DRAFT_MTP"}
if spec["speculation"] != "none":
    kind = "COMMON_SPECULATIVE_TYPE_" + kinds[spec["speculation"]]
    params.speculative.types = [engine.common_speculative_type[kind]]
    params.speculative.draft.n_max = spec["n_max"]
    if spec["draft"]:
        params.speculative.draft.mparams.path = spec["draft"]
server = engine.Server(params)
if spec["speculation"] == "dflash":
    body = json.dumps({"prompt": "word1 word2", "n_predict": 2}).encode()
    address = "http://" + server.listening_address.removeprefix("http://") + "/completion"
    urllib.request.urlopen(urllib.request.Request(address, body, {"content-type": "application/json"})).read()
sys.stderr.flush()
os._exit(0)
"""


@dataclass(frozen=True)
class Measured:
    """Bytes that the engine allocated, `draft_…` for the second model or context."""

    weights: int
    kv: int
    recurrent: int
    compute: int
    draft_kv: int
    draft_compute: int


@dataclass(frozen=True)
class Case:
    name: str
    target: GgufHeader
    draft: GgufHeader | None
    settings: ServerSettings
    lines: tuple[str, ...]


def measure(model: Path, draft: Path | None, settings: ServerSettings) -> tuple[str, ...]:
    """The lines about buffers that the engine prints when it serves `model`."""
    spec = {name: getattr(settings, name) for name in settings.__dataclass_fields__}
    spec |= {"model": str(model), "draft": str(draft) if draft else None}
    done = subprocess.run(
        [sys.executable, "-c", _ENGINE, json.dumps(spec)],
        capture_output=True,
        timeout=_LIMIT_SECONDS,
        env={name: value for name, value in os.environ.items() if not name.startswith("LLAMA_")},
        check=False,
    )
    log = done.stderr.decode("utf-8", "replace")
    if done.returncode:
        raise RuntimeError(f"the engine did not start: {log[-2000:]}")
    return memory_lines(log)


def memory_lines(log: str) -> tuple[str, ...]:
    """What a log at the level of traces says about buffers, without times."""
    wanted = ("buffer size", "constructing llama_context", "n_ctx_seq  ")
    return tuple(
        re.sub(r"^[\d.]+ \w +", "", line).strip()
        for line in log.splitlines()
        if any(part in line for part in wanted) and "output buffer" not in line
    )


def read_measured(lines: tuple[str, ...]) -> Measured:
    """Sums up the lines: what follows the second context belongs to the draft.

    A context that reserves again counts with its last number. The target does so after the draft is
    there, when its hidden states are asked for: that one comes last of all.
    """
    weights = recurrent = contexts = 0
    kv, compute = [0, 0], [[0], [0]]
    for line in lines:
        if "constructing llama_context" in line:
            contexts += 1
        found = _BUFFER.search(line)
        if not found:
            continue
        size, place = int(float(found[2]) * MIB), max(0, contexts - 1)
        if found[1] == "model":
            weights += 0 if contexts or "REPACK" in line else size
        elif found[1] == "KV":
            kv[place] += size
        elif found[1] == "RS":
            recurrent += size
        else:
            compute[place].append(size)
    if len(compute[1]) > 3:
        compute[0].append(compute[1].pop())
    return Measured(weights, kv[0], recurrent, compute[0][-1], kv[1], compute[1][-1])


def assert_near(need: Estimate, measured: Measured, least: int = 0) -> None:
    """Each part of the estimate is at most a tenth off, and so is the whole.

    Args:
        least: bytes that a part may be off in any case, for models that are smaller than what is fitted to.
    """
    estimated = Measured(
        weights=need.part("weights"),
        kv=need.part("kv"),
        recurrent=need.part("recurrent"),
        compute=need.part("compute"),
        draft_kv=need.part("draft kv"),
        draft_compute=need.part("draft compute"),
    )
    for name in Measured.__dataclass_fields__:
        got, expected = getattr(estimated, name), getattr(measured, name)
        allowed = max(least, ALLOWED * expected)
        assert abs(got - expected) <= allowed, f"{name}: estimated {got}, measured {expected}"
    whole, expected = sum(astuple(estimated)), sum(astuple(measured))
    assert abs(whole - expected) <= ALLOWED * expected, f"whole: estimated {whole}, measured {expected}"


def recorded_cases() -> list[Case]:
    stored = json.loads(RECORD.read_text("utf-8"))
    headers = {name: _header(name, model) for name, model in stored["models"].items()}
    return [
        Case(
            name=" ".join([case["target"], case["draft"] or "", *map(str, case["settings"].values())]),
            target=headers[case["target"]],
            draft=headers[case["draft"]] if case["draft"] else None,
            settings=ServerSettings(**case["settings"]),
            lines=tuple(case["lines"]),
        )
        for case in stored["cases"]
    ]


def _header(name: str, model: dict[str, Any]) -> GgufHeader:
    metadata = {
        key: GgufArray(len(value), tuple(value)) if isinstance(value, list) else value
        for key, value in model["keys"].items()
    }
    metadata["tokenizer.ggml.tokens"] = GgufArray(model["vocabulary"])
    tensors = tuple(Tensor(one[0], tuple(one[1]), 0, 0, one[2]) for one in model["tensors"])
    return GgufHeader(Path(name), 0, False, metadata, tensors)


def _recorded(header: GgufHeader) -> dict[str, Any]:
    """What the estimate reads of a header; the tensors of a layer as one."""
    keys = {}
    for key, value in header.metadata.items():
        if key.startswith((f"{header.architecture}.", "general.architecture")):
            keys[key] = list(value.items) if isinstance(value, GgufArray) else value
    tensors: dict[str, tuple[tuple[int, ...], int]] = {}
    for tensor in header.tensors:
        block = tensor.name.split(".")
        name = f"blk.{block[1]}." if block[0] == "blk" else tensor.name
        tensors[name] = (tensor.dimensions, tensors.get(name, ((), 0))[1] + tensor.bytes)
    listed = [[name, list(shape), size] for name, (shape, size) in tensors.items()]
    return {"vocabulary": header.vocabulary_size, "keys": keys, "tensors": listed}


def synthetic_models(folder: Path) -> dict[str, Path]:
    """Shapes near those of real models, with fewer layers, so that an engine loads them in a second."""
    build = gguf_models
    return {
        "qwen3": build.dense(
            folder / "qwen3.gguf",
            layers=8,
            width=1024,
            heads=16,
            kv_heads=8,
            head=128,
            inner=3072,
            vocabulary=32000,
        ),
        "dflash": build.dflash(
            folder / "dflash.gguf",
            layers=2,
            width=1024,
            heads=16,
            kv_heads=8,
            head=128,
            inner=3072,
            vocabulary=32000,
            target_layers=(1, 2, 4, 6),
        ),
        "gemma3": build.gemma3(folder / "gemma3.gguf", layers=12, width=2560, inner=10240, vocabulary=32000),
        "gemma4": build.gemma4(folder / "gemma4.gguf", layers=12, width=2816, inner=8448, vocabulary=32000),
        "qwen3moe": build.mixture(
            folder / "qwen3moe.gguf", layers=2, width=2048, expert=768, experts=64, used=8, vocabulary=32000
        ),
        "qwen3moe-wide": build.mixture(
            folder / "qwen3moe-wide.gguf",
            layers=2,
            width=1024,
            expert=2048,
            experts=32,
            used=8,
            vocabulary=32000,
        ),
        "qwen35": build.hybrid(
            folder / "qwen35.gguf",
            layers=8,
            width=2560,
            inner=9216,
            value_heads=32,
            heads=16,
            kv_heads=4,
            vocabulary=32000,
        ),
        "qwen35-small": build.hybrid(folder / "qwen35-small.gguf", vocabulary=32000),
        "qwen35-mtp": build.hybrid(
            folder / "qwen35-mtp.gguf",
            width=1024,
            inner=3072,
            value_heads=32,
            heads=16,
            kv_heads=4,
            vocabulary=64000,
            predicting=1,
        ),
        "dflash-small": build.dflash(
            folder / "dflash-small.gguf",
            width=512,
            inner=1024,
            heads=4,
            kv_heads=2,
            head=128,
            vocabulary=32000,
            target_layers=(1, 2),
        ),
    }


SYNTHETIC_CASES: list[tuple[str, str | None, dict[str, Any]]] = [
    ("qwen3", None, {"context": 1666, "slots": 3}),
    ("qwen3", None, {"context": 8192, "flash_attention": False}),
    ("qwen3", "dflash", {"context": 8192, "speculation": "dflash", "n_max": 15}),
    ("qwen3", "dflash", {"context": 4096, "slots": 2, "speculation": "dflash", "n_max": 7, "ubatch": 256}),
    ("gemma3", None, {"context": 8192}),
    ("gemma3", None, {"context": 1024}),
    ("gemma3", None, {"context": 4096, "slots": 2}),
    ("gemma3", None, {"context": 4096, "slots": 2, "unified_kv": True}),
    ("gemma3", None, {"context": 8192, "flash_attention": False}),
    ("gemma3", None, {"context": 8192, "full_window_cache": True}),
    ("gemma4", None, {"context": 8192}),
    ("gemma4", None, {"context": 32768, "kv_type_k": "q5_0", "kv_type_v": "q4_1"}),
    ("qwen3moe", None, {"context": 4096}),
    ("qwen3moe-wide", None, {"context": 4096}),
    ("qwen35", None, {"context": 8192}),
    ("qwen35-small", None, {"context": 4096}),
    ("qwen35-small", None, {"context": 2048, "slots": 2}),
    ("qwen35-small", "dflash-small", {"context": 4096, "speculation": "dflash", "n_max": 7}),
    ("qwen35-mtp", None, {"context": 4096, "speculation": "mtp", "n_max": 3}),
]  # fmt: skip
_REAL_SETTINGS: list[dict[str, Any]] = [
    {"context": 4096},
    {"context": 16384},
    {"context": 4096, "ubatch": 128},
    {"context": 4096, "ubatch": 1024},
    {"context": 4096, "flash_attention": False},
    {"context": 1024, "slots": 4},
    {"context": 1024, "slots": 4, "unified_kv": True},
    {"context": 4096, "kv_type_k": "q8_0", "kv_type_v": "q8_0"},
    {"context": 4096, "kv_type_k": "q5_0", "kv_type_v": "q4_1"},
    {"context": 4096, "kv_type_k": "q4_0", "kv_type_v": "q4_0"},
]


def record(names: list[str]) -> None:
    """Measures the given models and the synthetic ones, and writes the record."""
    models: dict[str, Any] = {}
    cases = []

    def add(target: tuple[str, Path], draft: tuple[str, Path] | None, settings: dict[str, Any]) -> None:
        for name, path in filter(None, (target, draft)):
            models.setdefault(name, _recorded(read_header(path)))
        lines = measure(target[1], draft[1] if draft else None, ServerSettings(**settings))
        measured = {"target": target[0], "draft": draft[0] if draft else None}
        cases.append({**measured, "settings": settings, "lines": lines})
        print(target[0], settings, file=sys.stderr)

    for name in names:
        first, _, second = name.partition("+")
        target = (Path(first).stem, Path(first))
        if second:
            settings = {"context": 4096, "speculation": "draft", "n_max": 6}
            add(target, (Path(second).stem, Path(second)), settings)
            continue
        for settings in _REAL_SETTINGS:
            add(target, None, settings)
    with tempfile.TemporaryDirectory() as folder:
        paths = synthetic_models(Path(folder))
        for target_name, draft_name, settings in SYNTHETIC_CASES:
            draft = (draft_name, paths[draft_name]) if draft_name else None
            add((target_name, paths[target_name]), draft, settings)
    text = json.dumps({"models": models, "cases": cases})
    RECORD.write_text(re.sub(r'(\{"target"|"[\w.-]+": \{"vocabulary")', r"\n\1", text) + "\n", "utf-8")


if __name__ == "__main__":
    record(sys.argv[1:])
