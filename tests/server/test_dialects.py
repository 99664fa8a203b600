"""The shipped profiles in all dialects, and the two commands of the walk-through word for word."""

from pathlib import Path

import pytest

from agent.server.argv import Command, Places, command_for
from agent.server.caps import DIALECTS, built_in, parse_help
from agent.server.profile import DialectName
from agent.server.profile_files import list_profiles, load_profile
from tests.server.commands import pairs, words

SHIPPED = Path(__file__).parents[2] / "server_profiles"
HELP = Path(__file__).parent / "cases" / "help"
NAMES = [found.name for found in list_profiles([SHIPPED])]
TARGET = "models/gemma-4-31B-it-Q4_K_S.gguf"
DRAFT = "models/gemma4-31b-it-dflash-Q5_K_M.gguf"
COMMON = (
    "--host 0.0.0.0 --port 8910 -np 1 -ngl all -b 2048 -ub 512 --ctx-size 32768 --flash-attn on --jinja "
    "--metrics --log-timestamps --log-prefix --reasoning off --temp 0.7 --top-k 64 --top-p 0.95 --min-p 0.0"
)
BASELINE = f"-m {TARGET} {COMMON} --cache-type-k q5_0 --cache-type-v q4_1"
DFLASH = (
    f"-m {TARGET} {COMMON} --spec-draft-model {DRAFT} --spec-type dflash --spec-dflash-cross-ctx 1024 "
    "--kv-unified --spec-draft-ngl all --cache-ram 0 --no-mmap --mlock --no-host"
)


def command(name: str, dialect: DialectName, host: str | None = None) -> Command:
    profile = load_profile(name, [SHIPPED])
    files = [f"models/{file.file}" for file in profile.model_files]
    target, draft = [*files, "", ""][:2]
    return command_for(profile, built_in(dialect), Places(target=target, draft=draft, host=host))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("gemma4-31b", BASELINE), ("gemma4-31b-dflash", DFLASH)],
    ids=["baseline", "dflash"],
)
def test_command_of_the_walk_through_comes_out_flag_for_flag(name: str, expected: str):
    made = command(name, "bee-0.3", host="0.0.0.0")
    assert words(made) == pairs(expected)
    assert len(made.argv[1:]) == len(expected.split())
    assert made.refusals == ()


def test_dflash_command_in_the_words_of_llama_cpp():
    made = command("gemma4-31b-dflash", "llama.cpp", host="0.0.0.0")
    gone = {("--spec-type", "dflash"), ("--spec-dflash-cross-ctx", "1024"), ("--no-mmap",), ("--mlock",)}
    new = {
        ("--spec-type", "draft-dflash"),
        ("--spec-draft-n-max", "15"),
        ("-lm", "mlock"),
        ("--cors-origins", "http://127.0.0.1:8910"),
    }
    assert words(made) == (pairs(DFLASH) - gone) | new
    assert {notice.code for notice in made.warnings} == {"cross_context", "open-server"}


def test_dflash_command_in_the_words_of_beellama_0_4_leaves_the_length_to_the_drafter():
    found = words(command("gemma4-31b-dflash", "bee-0.4"))
    assert {("--spec-type", "draft-dflash"), ("-lm", "mlock")} <= found
    assert not any(pair[0] == "--spec-draft-n-max" for pair in found)


def test_dflash_command_in_the_words_of_ik_llama_cpp():
    made = command("gemma4-31b-dflash", "ik")
    assert ("--spec-type", "dflash:n_max=15,cross_ctx=1024") in words(made)
    expected = {("--model-draft", DRAFT), ("--gpu-layers-draft", "999"), ("-ngl", "999"), ("--jinja",)}
    assert expected <= words(made)
    assert "no_host" in {notice.code for notice in made.warnings}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", NAMES)
def test_shipped_profile_is_translated_or_refused_with_a_reason(name: str, dialect: DialectName):
    made = command(name, dialect)
    capabilities = built_in(dialect)
    assert made.refusals or made.arguments
    for notice in (*made.refusals, *made.warnings):
        assert notice.code
        assert notice.message
        assert "\n" not in notice.message
    if load_profile(name, [SHIPPED]).engine in ("vllm", "sglang", "remote"):
        return
    for argument in made.arguments:
        assert capabilities.knows(argument.flag)
        assert (argument.value is not None) == (argument.flag in capabilities.valued)
        assert argument.comment
        allowed = capabilities.values.get(argument.flag, ())
        if argument.flag != "--spec-type" and allowed:
            assert argument.value in allowed or argument.flag == "-ngl"


REFUSED = {
    "qwen3.6-27b-dflash-precision": {"llama.cpp", "ik"},
    "qwen3.6-27b-dflash-speed": {"llama.cpp", "ik"},
    "remote": set(DIALECTS),
    "sglang": set(DIALECTS),
    "vllm": set(DIALECTS),
}


@pytest.mark.parametrize("name", NAMES)
def test_only_what_a_family_really_cannot_do_is_refused(name: str):
    assert {dialect for dialect in DIALECTS if command(name, dialect).refusals} == REFUSED.get(name, set())


@pytest.mark.parametrize(
    ("help_name", "dialect"),
    [("llama.cpp", "llama.cpp"), ("beellama-0.4", "bee-0.4"), ("ik_llama.cpp", "ik")],
)
@pytest.mark.parametrize("name", ["gemma4-31b", "gemma4-31b-dflash", "qwen3.6-27b-mtp", "qwen3-14b"])
def test_binary_and_built_in_list_of_a_family_lead_to_the_same_command(
    name: str, help_name: str, dialect: DialectName
):
    profile = load_profile(name, [SHIPPED])
    places = Places(target="t.gguf", draft="d.gguf")
    asked = parse_help((HELP / f"{help_name}.txt").read_text("utf-8"))
    assert command_for(profile, asked, places).argv == command_for(profile, built_in(dialect), places).argv


def test_turboquant_becomes_kvarn_in_beellama_0_4_with_a_warning():
    made = command("qwen3.6-27b-dflash-speed", "bee-0.4")
    assert {("--cache-type-k", "kvarn3"), ("--cache-type-v", "kvarn3")} <= words(made)
    assert any("turbo3 is called kvarn3" in notice.message for notice in made.warnings)


def test_first_beellama_drafts_with_a_draft_model_without_a_name_for_it():
    asked = parse_help((HELP / "beellama-may.txt").read_text("utf-8"))
    places = Places(target="t.gguf", draft="d.gguf")
    made = command_for(load_profile("embedded-draft", [SHIPPED]), asked, places)
    assert ("--spec-draft-model", "d.gguf") in words(made)
    assert "--spec-type" not in made.argv
    assert made.refusals == ()


def test_first_beellama_knows_no_mtp():
    asked = parse_help((HELP / "beellama-may.txt").read_text("utf-8"))
    made = command_for(load_profile("qwen3.6-27b-mtp", [SHIPPED]), asked, Places(target="t.gguf"))
    assert [notice.code for notice in made.refusals] == ["speculation"]
    assert 'does not know speculation.kind = "mtp"' in made.refusals[0].message
