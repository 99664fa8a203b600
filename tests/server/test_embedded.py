"""How the child process translates a spec, with a recording stand-in for the engine."""

import json
import os
import signal
import subprocess
import sys
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent.server.embedded import EXIT_ENGINE_MISSING, bound_log, parameters
from agent.server.launch import EMBEDDED_COMMAND, LaunchPlan, spec
from agent.server.profile import Profile
from tests.patience import PATIENCE_SECONDS


class Parts(SimpleNamespace):
    """Has every attribute that is asked for, as the engine's parameter tree does."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        part = Parts()
        setattr(self, name, part)
        return part


def engine() -> SimpleNamespace:
    kinds = ["NONE", "DRAFT_SIMPLE", "DRAFT_DFLASH", "NGRAM_SIMPLE", "NGRAM_MOD", "NGRAM_MAP_K"]
    flash = ["AUTO", "ENABLED", "DISABLED"]
    return SimpleNamespace(
        CommonParams=Parts,
        ggml_type=Enum("ggml_type", ["GGML_TYPE_F16", "GGML_TYPE_Q8_0"]),
        llama_load_mode=Enum("load_mode", ["LLAMA_LOAD_MODE_MLOCK", "LLAMA_LOAD_MODE_MMAP_MLOCK"]),
        llama_flash_attn_type=Enum("flash", [f"LLAMA_FLASH_ATTN_TYPE_{name}" for name in flash]),
        common_speculative_type=Enum("kind", [f"COMMON_SPECULATIVE_TYPE_{name}" for name in kinds]),
    )


@pytest.fixture
def translate(tmp_path: Path):
    """Profile settings in, engine parameters out."""

    def run(**changes: Any) -> Any:
        table = {"name": "p", "target": {"file": "t.gguf"}, "context": 1024, **changes}
        profile = Profile.model_validate(table)
        plan = LaunchPlan(
            profile=profile,
            fingerprint="f",
            model_path=tmp_path / "t.gguf",
            draft_path=tmp_path / "d.gguf" if profile.uses_draft_model else None,
            threads=3,
            runtime_folder=tmp_path,
            log_folder=tmp_path,
        )
        (tmp_path / "server-f.key").write_text("secret\n", "utf-8")
        return parameters(json.loads(json.dumps(spec(plan, 4711))), engine())

    return run


def test_server_listens_on_the_loopback_interface_with_a_key_and_for_no_web_page(translate):
    params = translate()
    assert (params.hostnames, params.port, params.api_keys) == (["127.0.0.1"], 4711, ["secret"])
    assert (params.cors_origins, params.cors_credentials, params.ui) == ("", False, False)
    assert (params.endpoint_metrics, params.endpoint_slots, params.endpoint_props) == (True, True, True)
    assert (params.use_jinja, params.offline) == (True, True)


def test_each_slot_gets_the_context_of_the_profile(translate):
    params = translate(slots=3)
    assert (params.n_parallel, params.n_ctx) == (3, 3072)


def test_threads_go_to_both_pools(translate):
    params = translate()
    assert (params.cpuparams.n_threads, params.cpuparams_batch.n_threads) == (3, 3)


def test_cache_types_and_flash_attention_are_looked_up_by_name(translate):
    params = translate(kv_type_k="q8_0", flash_attention="on")
    assert params.cache_type_k.name == "GGML_TYPE_Q8_0"
    assert params.cache_type_v.name == "GGML_TYPE_F16"
    assert params.flash_attn_type.name == "LLAMA_FLASH_ATTN_TYPE_ENABLED"


def test_value_that_the_engine_does_not_know_is_named(translate):
    with pytest.raises(ValueError, match="does not know 'iq4_nl'"):
        translate(kv_type_k="iq4_nl")


def kinds(params: Any) -> list[str]:
    return [kind.name.removeprefix("COMMON_SPECULATIVE_TYPE_") for kind in params.speculative.types]


def test_no_speculation_leaves_the_engine_alone(translate):
    assert "speculative" not in vars(translate())


def test_ngram_mod_gets_its_own_numbers(translate):
    params = translate(speculation={"kind": "ngram-mod", "n_match": 24, "n_min": 48, "n_max": 64})
    assert kinds(params) == ["NGRAM_MOD"]
    assert vars(params.speculative.ngram_mod) == {"n_match": 24, "n_min": 48, "n_max": 64}


def test_numbers_that_are_not_given_stay_the_engines(translate):
    params = translate(speculation={"kind": "ngram-map-k", "size_n": 8})
    assert kinds(params) == ["NGRAM_MAP_K"]
    assert vars(params.speculative.ngram_map_k) == {"size_n": 8}


def test_draft_model_is_loaded_with_its_numbers(translate, tmp_path: Path):
    speculation = {"kind": "draft", "n_max": 6, "n_min": 0, "p_min": 0.5}
    params = translate(draft={"file": "d.gguf"}, speculation=speculation)
    draft = params.speculative.draft
    assert kinds(params) == ["DRAFT_SIMPLE"]
    assert draft.mparams.path == str(tmp_path / "d.gguf")
    assert (draft.n_max, draft.n_min, draft.p_min) == (6, 0, 0.5)
    assert draft.cpuparams.n_threads == 3


def test_dflash_drafts_a_whole_block_unless_told_otherwise(translate):
    draft = {"file": "d.gguf"}
    assert translate(draft=draft, speculation={"kind": "dflash"}).speculative.draft.n_max == 15
    assert translate(draft=draft, speculation={"kind": "dflash", "n_max": 7}).speculative.draft.n_max == 7


def test_kinds_are_combined_and_each_has_its_own_numbers(translate):
    speculation = {"kind": ["draft", "ngram-mod", "ngram-map-k"], "n_max": 6, "ngram_n_max": 64, "size_n": 8}
    params = translate(draft={"file": "d.gguf"}, speculation=speculation)
    assert kinds(params) == ["DRAFT_SIMPLE", "NGRAM_MOD", "NGRAM_MAP_K"]
    assert params.speculative.draft.n_max == 6
    assert vars(params.speculative.ngram_mod) == {"n_max": 64}
    assert vars(params.speculative.ngram_map_k) == {"size_n": 8}


def test_draft_model_may_be_placed_and_stored_in_another_way(translate):
    speculation = {"kind": "draft", "draft_gpu_layers": 3, "draft_kv_type_k": "q8_0"}
    draft = translate(draft={"file": "d.gguf"}, gpu_layers="all", speculation=speculation).speculative.draft
    assert (draft.n_gpu_layers, draft.cache_type_k.name) == (3, "GGML_TYPE_Q8_0")
    assert "cache_type_v" not in vars(draft)


def test_memory_settings_are_passed_on_where_they_are_given(translate):
    assert not {"kv_unified", "load_mode", "n_ctx_checkpoints", "swa_full"} & set(vars(translate()))
    params = translate(
        unified_kv=True, load_mode="mmap+mlock", checkpoints=4, checkpoint_step=99, swa_full=True
    )
    assert (params.kv_unified, params.swa_full) == (True, True)
    assert params.load_mode.name == "LLAMA_LOAD_MODE_MMAP_MLOCK"
    assert (params.n_ctx_checkpoints, params.checkpoint_min_step) == (4, 99)


def test_template_is_told_what_the_profile_says(translate):
    arguments = {"style": "short", "depth": 2}
    params = translate(reasoning="off", preserve_reasoning=True, template_arguments=arguments)
    assert params.enable_reasoning == 0
    assert params.default_template_kwargs == {"style": '"short"', "depth": "2", "preserve_thinking": "true"}


FAKE_ENGINE = """
import os, signal, sys
class CommonParams:
    def __getattr__(self, name):
        value = CommonParams()
        object.__setattr__(self, name, value)
        return value
class Names:
    def __getitem__(self, name): return name
ggml_type = llama_flash_attn_type = common_speculative_type = Names()
class Server:
    def __init__(self, params):
        print("folder", os.getcwd(), file=sys.stderr)
        print("llama", sorted(name for name in os.environ if name.startswith("LLAMA_")), file=sys.stderr)
        print("imported from", [path for path in sys.path if path.endswith("project")], file=sys.stderr)
        raise RuntimeError("Failed to init server, please check the input params.")
"""


def run_child(folder: Path, engine_source: str) -> "subprocess.CompletedProcess[str]":
    """Runs the real child, in a project that has modules of the same names as ours, with another engine."""
    project, engine_folder = folder / "project", folder / "engine"
    for place in (project, engine_folder):
        place.mkdir()
    (project / "json.py").write_text("raise SystemExit('the project was imported')", "utf-8")
    (engine_folder / "xllamacpp.py").write_text(engine_source, "utf-8")
    profile = Profile.model_validate({"name": "p", "target": {"file": "t.gguf"}})
    plan = LaunchPlan(
        profile=profile,
        fingerprint="f",
        model_path=folder / "t.gguf",
        threads=1,
        runtime_folder=folder,
        log_folder=folder,
    )
    (folder / "server-f.key").write_text("secret", "utf-8")
    (folder / "spec.json").write_text(json.dumps(spec(plan, 1)), "utf-8")
    environment = {**os.environ, "PYTHONPATH": str(engine_folder), "LLAMA_ARG_SPEC_TYPE": "dflash"}
    return subprocess.run(
        [*EMBEDDED_COMMAND, "--spec", str(folder / "spec.json")],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def test_child_leaves_folder_and_engine_variables_behind_and_imports_nothing_of_the_project(tmp_path: Path):
    done = run_child(tmp_path, FAKE_ENGINE)
    assert "folder /\n" in done.stderr
    assert "llama []\n" in done.stderr
    assert "the project was imported" not in done.stderr
    assert "agent: the engine did not start: Failed to init server" in done.stderr
    assert done.returncode == 4


def test_child_without_the_engine_says_so(tmp_path: Path):
    done = run_child(tmp_path, "raise ImportError('no such engine')")
    assert done.returncode == EXIT_ENGINE_MISSING
    assert "agent: cannot import xllamacpp: no such engine" in done.stderr


def test_child_is_ended_by_sigterm_while_the_engine_loads(tmp_path: Path):
    loading = FAKE_ENGINE.replace(
        'raise RuntimeError("Failed', 'os.kill(os.getpid(), signal.SIGTERM) or print("'
    )
    done = run_child(tmp_path, loading)
    assert done.returncode == -signal.SIGTERM


def test_log_above_its_limit_is_cut_and_kept_beside(tmp_path: Path):
    log = tmp_path / "server.log"
    with log.open("ab", buffering=0) as writer:
        writer.write(b"x" * 100)
        bound_log(log, 200)
        assert log.stat().st_size == 100
        bound_log(log, 50)
        writer.write(b"after")
    assert log.read_bytes() == b"after"
    assert (tmp_path / "server.log.1").read_bytes() == b"x" * 100


def test_python_of_the_child_is_ours():
    assert EMBEDDED_COMMAND[:2] == (sys.executable, "-P")
