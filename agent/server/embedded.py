"""The child process: llama.cpp's server out of the `xllamacpp` wheel, on the loopback interface.

Run as a file (`python -P …/embedded.py --spec FILE`) or with `-m agent.server.embedded`. It imports
nothing of this package, so that it can be run by path: `python -m` would put the current folder, which
belongs to the user's project, in front of everything that is imported.

The process looks after itself: it ends when the record that names it is gone, because then nobody can
find it any more, and it keeps its log from growing without bound.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

EXIT_ENGINE_MISSING = 3
EXIT_START_FAILED = 4
LOOK_SECONDS = 5.0
GRACE_SECONDS = 30.0
LOG_LIMIT_BYTES = 8 * 1024 * 1024
QUIET_SECONDS = 0.3
MOST_SECONDS_FOR_LOG = 3.0

_KINDS = {
    "draft": "DRAFT_SIMPLE",
    "dflash": "DRAFT_DFLASH",
    "mtp": "DRAFT_MTP",
    "eagle3": "DRAFT_EAGLE3",
    "dspark": "DRAFT_DSPARK",
    "ngram-simple": "NGRAM_SIMPLE",
    "ngram-mod": "NGRAM_MOD",
    "ngram-map-k": "NGRAM_MAP_K",
    "ngram-map-k4v": "NGRAM_MAP_K4V",
    "ngram-cache": "NGRAM_CACHE",
}
_NGRAM_TABLES = {
    "ngram-simple": "ngram_simple",
    "ngram-map-k": "ngram_map_k",
    "ngram-map-k4v": "ngram_map_k4v",
}
_DFLASH_N_MAX = 15
"""Block size 16 less one; the engine's own default of 3 throws most of each drafted block away."""
_ALL_LAYERS = 10_000


def main() -> int:
    parser = argparse.ArgumentParser(prog="agent.server.embedded", description="serve one model on 127.0.0.1")
    parser.add_argument("--spec", required=True, type=Path, help="JSON file that says what to serve")
    spec = json.loads(parser.parse_args().spec.read_text("utf-8"))
    _prepare_process()
    try:
        import xllamacpp
    except ImportError as error:
        print(f"agent: cannot import xllamacpp: {error}", file=sys.stderr, flush=True)
        return EXIT_ENGINE_MISSING
    try:
        engine: Any = xllamacpp
        server = engine.Server(parameters(spec, engine))
    except (RuntimeError, ValueError, AttributeError) as error:
        print(f"agent: the engine did not start: {error}", file=sys.stderr, flush=True)
        _let_it_write(Path(spec["log_file"]))
        # The engine's own threads may still run; an orderly exit would wait for them.
        os._exit(EXIT_START_FAILED)
    print(f"agent: serving on {server.listening_address}", file=sys.stderr, flush=True)
    _watch(Path(spec["record_file"]), Path(spec["log_file"]))
    print("agent: the record of this server is gone, ending", file=sys.stderr, flush=True)
    os._exit(0)


def _let_it_write(log_file: Path) -> None:
    """Waits until the log grows no more: a thread of the engine writes it, and the cause may come last."""
    size, quiet_since, end = -1, time.monotonic(), time.monotonic() + MOST_SECONDS_FOR_LOG
    while (now := time.monotonic()) < min(end, quiet_since + QUIET_SECONDS):
        written = log_file.stat().st_size if log_file.exists() else 0
        if written != size:
            size, quiet_since = written, now
        time.sleep(0.02)


def parameters(spec: dict[str, Any], engine: Any) -> Any:
    """Translates the spec into the engine's parameters.

    Attribute names follow llama.cpp's `common_params`, see the fields of `xllamacpp.CommonParams`.

    Raises:
        ValueError: the engine does not know a value.
    """
    params = engine.CommonParams()
    params.model.path = spec["model_path"]
    params.n_parallel = spec["slots"]
    # The engine divides its context among the slots; the profile says what one slot gets.
    params.n_ctx = spec["context"] * spec["slots"]
    params.n_batch = spec["batch"]
    params.n_ubatch = min(spec["ubatch"], spec["batch"])
    params.cache_type_k = _enum(engine.ggml_type, "GGML_TYPE_", spec["kv_type_k"])
    params.cache_type_v = _enum(engine.ggml_type, "GGML_TYPE_", spec["kv_type_v"])
    flash = {"auto": "AUTO", "on": "ENABLED", "off": "DISABLED"}[spec["flash_attention"]]
    params.flash_attn_type = _enum(engine.llama_flash_attn_type, "LLAMA_FLASH_ATTN_TYPE_", flash)
    params.cache_ram_mib = spec["cache_ram_mib"]
    params.n_gpu_layers = _layers(spec["gpu_layers"])
    for pool in (params.cpuparams, params.cpuparams_batch):
        pool.n_threads = spec["threads"]
    _set_memory(params, spec, engine)
    _set_server(params, spec)
    _set_template(params, spec)
    _set_speculation(params, spec, engine)
    return params


def _layers(asked: Any) -> Any:
    named: dict[Any, int] = {"auto": -1, "all": _ALL_LAYERS}
    return named.get(asked, asked)


def _set_memory(params: Any, spec: dict[str, Any], engine: Any) -> None:
    """What the profile says beyond the usual; the engine's own defaults otherwise."""
    for key, name in (("unified_kv", "kv_unified"), ("no_host", "no_host"), ("swa_full", "swa_full")):
        if spec[key]:
            setattr(params, name, True)
    for key, name in (
        ("checkpoints", "n_ctx_checkpoints"),
        ("checkpoint_step", "checkpoint_min_step"),
        ("cache_reuse", "n_cache_reuse"),
    ):
        if spec[key] is not None:
            setattr(params, name, spec[key])
    mode: str = spec["load_mode"]
    if mode != "auto":
        name = {"mmap+mlock": "MMAP_MLOCK", "dio": "DIRECT_IO"}.get(mode, mode)
        params.load_mode = _enum(engine.llama_load_mode, "LLAMA_LOAD_MODE_", name)


def _set_template(params: Any, spec: dict[str, Any]) -> None:
    params.use_jinja = spec["jinja"]
    if spec["reasoning"] is not None:
        params.enable_reasoning = {"auto": -1, "off": 0, "on": 1}[spec["reasoning"]]
    arguments = dict(spec["template_arguments"])
    if spec["preserve_reasoning"] is not None:
        arguments["preserve_thinking"] = spec["preserve_reasoning"]
    if arguments:
        # The engine takes each value as JSON of its own.
        params.default_template_kwargs = {key: json.dumps(value) for key, value in arguments.items()}


def _set_server(params: Any, spec: dict[str, Any]) -> None:
    params.hostnames = ["127.0.0.1"]
    params.port = spec["port"]
    params.api_keys = [Path(spec["key_file"]).read_text("utf-8").strip()]
    # Any page in a browser may send requests to the loopback interface: no origin is let in.
    params.cors_origins = ""
    params.cors_origins_explicit = True
    params.cors_credentials = False
    params.ui = False
    params.offline = True
    params.endpoint_metrics = True
    params.endpoint_slots = True
    params.endpoint_props = True
    if spec.get("slot_save_path"):
        # The engine puts the name of a file right behind it.
        params.slot_save_path = f"{spec['slot_save_path'].rstrip('/')}/"


def _set_speculation(params: Any, spec: dict[str, Any], engine: Any) -> None:
    asked = spec["speculation"]
    kind = asked["kind"]
    if kind == "none":
        return
    kinds = [kind, *asked["also"]]
    params.speculative.types = [
        _enum(engine.common_speculative_type, "COMMON_SPECULATIVE_TYPE_", _KINDS[one]) for one in kinds
    ]
    for one in kinds:
        if one == "ngram-mod":
            _copy(asked, params.speculative.ngram_mod, "n_match")
            own = {"n_min": asked["ngram_n_min"], "n_max": asked["ngram_n_max"]}
            # The plain names belong to the draft model where there is one.
            _copy(asked if kind == one else {}, params.speculative.ngram_mod, "n_min", "n_max")
            _copy(own, params.speculative.ngram_mod, "n_min", "n_max")
        elif one in _NGRAM_TABLES:
            _copy(asked, getattr(params.speculative, _NGRAM_TABLES[one]), "size_n", "size_m", "min_hits")
    if not kind.startswith("ngram"):
        _set_draft(params.speculative.draft, spec, engine)


def _set_draft(draft: Any, spec: dict[str, Any], engine: Any) -> None:
    asked = spec["speculation"]
    if spec["draft_path"]:
        draft.mparams.path = spec["draft_path"]
    own_layers = asked["draft_gpu_layers"]
    draft.n_gpu_layers = _layers(spec["gpu_layers"] if own_layers is None else own_layers)
    for name, kv_type in (
        ("cache_type_k", asked["draft_kv_type_k"]),
        ("cache_type_v", asked["draft_kv_type_v"]),
    ):
        if kv_type is not None:
            setattr(draft, name, _enum(engine.ggml_type, "GGML_TYPE_", kv_type))
    for pool in (draft.cpuparams, draft.cpuparams_batch):
        pool.n_threads = spec["threads"]
    if asked["kind"] == "dflash":
        draft.n_max = _DFLASH_N_MAX
    _copy(asked, draft, "n_max", "n_min", "p_min")


def _copy(source: dict[str, Any], target: Any, *names: str) -> None:
    for name in names:
        if source.get(name) is not None:
            setattr(target, name, source[name])


def _enum(enumeration: Any, prefix: str, name: str) -> Any:
    try:
        return enumeration[prefix + name.upper()]
    except KeyError as error:
        raise ValueError(f"this engine does not know {name!r}") from error


def _prepare_process() -> None:
    """Leaves the starter's terminal, folder and environment behind."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    # Loading holds the interpreter for seconds; only the default action ends the process in that time.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # States of slots hold conversations; whatever is written is for the owner only.
    os.umask(0o077)
    # Not a folder of the user's, which could then not be unmounted.
    os.chdir("/")
    for name in [name for name in os.environ if name.startswith("LLAMA_")]:
        del os.environ[name]
    # Otherwise a failed assertion tries to attach a debugger.
    os.environ["GGML_NO_BACKTRACE"] = "1"


def _watch(record_file: Path, log_file: Path) -> None:
    """Returns when `record_file` no longer names this process."""
    started = time.monotonic()
    misses = 0
    while misses < 2:
        time.sleep(LOOK_SECONDS)
        bound_log(log_file, LOG_LIMIT_BYTES)
        if _is_recorded(record_file):
            misses = 0
        elif time.monotonic() - started > GRACE_SECONDS:
            misses += 1


def _is_recorded(record_file: Path) -> bool:
    try:
        return json.loads(record_file.read_text("utf-8"))["pid"] == os.getpid()
    except FileNotFoundError:
        return False
    except (OSError, ValueError, KeyError):
        return True


def bound_log(log_file: Path, limit: int) -> None:
    """Moves the content of a log above `limit` bytes to `….1`; it is open for appending, so it goes on."""
    try:
        if log_file.stat().st_size <= limit:
            return
        shutil.copyfile(log_file, log_file.with_name(f"{log_file.name}.1"))
        os.truncate(log_file, 0)
    except OSError:
        return


if __name__ == "__main__":
    sys.exit(main())
