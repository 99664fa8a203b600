"""The commands of vLLM and SGLang."""

import json
from typing import Any

import pytest

from agent.server.argv import Command, Places, command_for
from agent.server.caps import built_in
from agent.server.profile import Profile
from tests.server.commands import words


def make(engine: str, **changes: Any) -> Command:
    table = {"name": "p", "engine": engine, "model": "maker/big", "draft_model": "maker/small", **changes}
    return command_for(Profile.model_validate(table), built_in("llama.cpp"), Places())


def test_vllm_gets_dflash_as_json():
    made = make("vllm", speculation={"kind": "dflash"}, context=32768, slots=4)
    assert made.argv[:3] == ["vllm", "serve", "maker/big"]
    found = dict(pair for pair in words(made) if len(pair) == 2)
    assert json.loads(found["--speculative-config"]) == {
        "method": "dflash",
        "model": "maker/small",
        "num_speculative_tokens": 15,
    }
    assert (found["--max-model-len"], found["--max-num-seqs"]) == ("32768", "4")
    assert (found["--host"], found["--port"]) == ("127.0.0.1", "8000")


def test_sglang_counts_the_token_that_is_known_already():
    made = make("sglang", speculation={"kind": "dflash"}, port=31000)
    assert made.argv[:3] == ["python", "-m", "sglang.launch_server"]
    assert {
        ("--model-path", "maker/big"),
        ("--speculative-algorithm", "DFLASH"),
        ("--speculative-draft-model-path", "maker/small"),
        ("--speculative-num-draft-tokens", "16"),
        ("--port", "31000"),
    } <= words(made)


@pytest.mark.parametrize(
    ("engine", "kind", "expected"),
    [
        ("vllm", "mtp", '{"method":"mtp","num_speculative_tokens":1}'),
        ("vllm", "ngram-mod", '{"method":"ngram","num_speculative_tokens":5}'),
        ("sglang", "eagle3", "EAGLE3"),
        ("sglang", "ngram-simple", "NGRAM"),
    ],
)
def test_other_kinds_have_their_names(engine: str, kind: str, expected: str):
    assert expected in make(engine, speculation={"kind": kind}).argv


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_kind_without_a_name_is_refused(engine: str):
    made = make(engine, speculation={"kind": "ngram-map-k4v"})
    assert "does not know speculation.kind" in made.refusals[0].message


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_missing_models_are_refused(engine: str):
    made = make(engine, model=None, draft_model=None, speculation={"kind": "dflash"})
    assert [notice.code for notice in made.refusals] == ["model", "draft_model"]


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_key_never_gets_onto_the_command_line(engine: str):
    made = make(engine, api_key_file="/secret/key")
    assert "/secret/key" not in made.argv
    assert [notice.code for notice in made.warnings] == ["api_key_file"]


def test_setting_of_llama_server_is_left_out_with_a_warning():
    made = make("vllm", load_mode="mlock", checkpoints=3)
    assert {notice.code for notice in made.warnings} == {"load_mode", "checkpoints"}


@pytest.mark.parametrize(("engine", "name"), [("vllm", "fp8"), ("sglang", "fp8_e5m2")])
def test_context_in_eight_bits_is_their_own_format(engine: str, name: str):
    made = make(engine, kv_type_k="q8_0", kv_type_v="q8_0")
    assert ("--kv-cache-dtype", name) in words(made)
    assert made.warnings == ()
    assert [notice.code for notice in make(engine, kv_type_k="q4_0").warnings] == ["kv_type_k"]


def test_several_devices_share_the_model_and_extra_words_come_last():
    made = make("vllm", devices=["0", "1"], extra_args=["--enforce-eager", "--seed", "3"])
    assert ("--tensor-parallel-size", "2") in words(made)
    assert made.argv[-3:] == ["--enforce-eager", "--seed", "3"]
