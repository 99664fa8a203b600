"""Drafting as arguments: the part in which the dialects differ most."""

from typing import Any

import pytest

from agent.server.argv import Command
from agent.server.caps import parse_help
from agent.server.profile import DialectName
from tests.server.commands import codes, make, words

DRAFT = {"file": "d.gguf"}
OLD = "-m, --model F   x\n-c, --ctx-size N   x\n--port P   x\n-md, --model-draft F   x\n"


def draft(dialect: DialectName, kind: str | list[str], **numbers: Any) -> Command:
    return make(dialect, draft=DRAFT, speculation={"kind": kind, **numbers})


def without_model(dialect: DialectName, kind: str | list[str], **numbers: Any) -> Command:
    return make(dialect, speculation={"kind": kind, **numbers})


@pytest.mark.parametrize(
    ("dialect", "kind", "expected"),
    [
        ("llama.cpp", "draft", "draft-simple"),
        ("llama.cpp", "dflash", "draft-dflash"),
        ("llama.cpp", "mtp", "draft-mtp"),
        ("llama.cpp", "eagle3", "draft-eagle3"),
        ("llama.cpp", "dspark", "draft-dspark"),
        ("bee-0.4", "dflash", "draft-dflash"),
        ("bee-0.3", "dflash", "dflash"),
        ("bee-0.3", "mtp", "draft-mtp"),
        ("ik", "draft", "draft"),
        ("ik", "mtp", "mtp"),
        ("ik", "dspark", "dspark"),
    ],
)
def test_kind_with_a_model_has_the_name_of_the_dialect(dialect: DialectName, kind: str, expected: str):
    assert ("--spec-type", expected) in words(draft(dialect, kind))


@pytest.mark.parametrize("kind", ["ngram-simple", "ngram-mod", "ngram-map-k", "ngram-map-k4v", "ngram-cache"])
@pytest.mark.parametrize("dialect", ["bee-0.3", "bee-0.4", "llama.cpp", "ik"])
def test_kind_that_drafts_from_the_context_is_called_the_same_everywhere(dialect: DialectName, kind: str):
    made = without_model(dialect, kind)
    assert ("--spec-type", kind) in words(made)
    assert codes(made) == ([], [])


@pytest.mark.parametrize(
    ("dialect", "kind"),
    [
        ("llama.cpp", "suffix"),
        ("llama.cpp", "copyspec"),
        ("bee-0.4", "recycle"),
        ("ik", "copyspec"),
        ("bee-0.3", "dspark"),
        ("ik", "eagle3"),
    ],
)
def test_kind_that_a_family_does_not_have_is_refused(dialect: DialectName, kind: str):
    made = draft(dialect, kind)
    assert codes(made)[0] == ["speculation"]
    assert f'does not know speculation.kind = "{kind}"' in made.refusals[0].message


def test_server_older_than_dflash_is_refused_for_it_with_that_guess():
    made = make(
        parse_help(f"{OLD}--spec-type none,draft-simple   x\n"), draft=DRAFT, speculation={"kind": "dflash"}
    )
    assert "may be older than DFlash" in made.refusals[0].message


def test_older_server_takes_a_draft_model_as_the_wish_to_draft_with_it():
    for kinds in ("", "--spec-type none,ngram-cache   x\n"):
        made = make(parse_help(OLD + kinds), draft=DRAFT, speculation={"kind": "draft"})
        assert ("--model-draft", "d.gguf") in words(made)
        assert "--spec-type" not in made.argv
        assert codes(made)[0] == []


def test_server_without_any_drafting_is_refused_for_it():
    made = make(
        parse_help(OLD.replace("-md, --model-draft F   x\n", "")), draft=DRAFT, speculation={"kind": "draft"}
    )
    assert "cannot load a draft model" in made.refusals[0].message


@pytest.mark.parametrize(
    ("dialect", "expected"),
    [("llama.cpp", {("--spec-draft-n-max", "15")}), ("bee-0.3", set()), ("bee-0.4", set())],
)
def test_length_of_a_dflash_draft_is_only_given_where_the_default_is_too_short(
    dialect: DialectName, expected: set[tuple[str, ...]]
):
    found = {pair for pair in words(draft(dialect, "dflash")) if pair[0] == "--spec-draft-n-max"}
    assert found == expected


def test_numbers_of_a_draft_model():
    made = draft("llama.cpp", "draft", n_max=8, n_min=2, p_min=0.75)
    expected = {("--spec-draft-n-max", "8"), ("--spec-draft-n-min", "2"), ("--spec-draft-p-min", "0.75")}
    assert expected <= words(made)
    assert ("--spec-type", "draft:n_max=8,n_min=2,p_min=0.75") in words(
        draft("ik", "draft", n_max=8, n_min=2, p_min=0.75)
    )


def test_numbers_of_kinds_that_draft_from_the_context():
    made = without_model("llama.cpp", "ngram-mod", n_match=24, n_min=48, n_max=64)
    assert {
        ("--spec-ngram-mod-n-match", "24"),
        ("--spec-ngram-mod-n-min", "48"),
        ("--spec-ngram-mod-n-max", "64"),
    } <= words(made)
    made = without_model("llama.cpp", "ngram-map-k", size_n=8, size_m=16, min_hits=2)
    assert {
        ("--spec-ngram-map-k-size-n", "8"),
        ("--spec-ngram-map-k-size-m", "16"),
        ("--spec-ngram-map-k-min-hits", "2"),
    } <= words(made)
    made = without_model("ik", "ngram-mod", n_match=8, n_min=2, n_max=64)
    assert ("--spec-type", "ngram-mod:ngram_size_n=8,n_min=2,n_max=64") in words(made)
    made = without_model("ik", "ngram-simple", size_n=8, min_hits=2)
    assert ("--spec-type", "ngram-simple:ngram_size_n=8,ngram_min_hits=2") in words(made)


def test_combination_is_one_list_with_the_numbers_of_each():
    made = draft("llama.cpp", ["ngram-mod", "dflash"], n_max=7, n_match=24, ngram_n_max=64)
    expected = {
        ("--spec-type", "draft-dflash,ngram-mod"),
        ("--spec-draft-n-max", "7"),
        ("--spec-ngram-mod-n-match", "24"),
        ("--spec-ngram-mod-n-max", "64"),
    }
    assert expected <= words(made)
    assert codes(made) == ([], [])


def test_combination_is_cut_where_a_server_drafts_in_one_way_only():
    made = draft("bee-0.3", ["dflash", "ngram-mod"])
    assert ("--spec-type", "dflash") in words(made)
    assert codes(made) == ([], ["combination"])


def test_ik_takes_the_kind_without_a_model_first():
    made = draft("ik", ["draft", "ngram-mod"], n_max=4, ngram_n_max=64)
    stages = [argument.value for argument in made.arguments if argument.flag == "--spec-type"]
    assert stages == ["ngram-mod:n_max=64", "draft:n_max=4"]


def test_ik_combines_nothing_with_dflash():
    made = draft("ik", ["dflash", "ngram-mod"])
    assert [argument.value for argument in made.arguments if argument.flag == "--spec-type"] == [
        "dflash:n_max=15"
    ]
    assert codes(made) == ([], ["combination"])


@pytest.mark.parametrize(
    ("dialect", "expected", "warnings"),
    [
        ("bee-0.3", ("--spec-dflash-cross-ctx", "512"), []),
        ("bee-0.4", None, ["cross_context"]),
        ("llama.cpp", None, ["cross_context"]),
        ("ik", ("--spec-type", "dflash:n_max=15,cross_ctx=512"), []),
    ],
)
def test_window_of_a_dflash_drafter(
    dialect: DialectName, expected: tuple[str, ...] | None, warnings: list[str]
):
    made = draft(dialect, "dflash", cross_context=512)
    assert expected is None or expected in words(made)
    assert codes(made) == ([], warnings)


def test_newer_ik_has_the_window_as_context_of_the_draft():
    newer = parse_help(
        f"{OLD}-cd, --ctx-size-draft N   x\n--spec-type SPEC[:k=v,...]   x\n"
        + " " * 34
        + "types: none, draft, dflash\n"
        + " " * 34
        + "canonical keys: n_max,n_min\n"
    )
    made = make(newer, draft=DRAFT, speculation={"kind": "dflash", "cross_context": 512})
    assert {("--ctx-size-draft", "512"), ("--spec-type", "dflash:n_max=15")} <= words(made)


@pytest.mark.parametrize(
    ("dialect", "expected", "warnings"),
    [
        ("bee-0.3", ("--spec-draft-ctx-size", "256"), []),
        ("ik", ("--ctx-size-draft", "256"), []),
        ("llama.cpp", None, ["draft_context"]),
    ],
)
def test_context_of_the_draft_model(
    dialect: DialectName, expected: tuple[str, ...] | None, warnings: list[str]
):
    made = draft(dialect, "draft", draft_context=256)
    assert expected is None or expected in words(made)
    assert codes(made) == ([], warnings)


def test_every_slot_drafts_in_beellama_0_3():
    made = make("bee-0.3", draft=DRAFT, slots=3, speculation={"kind": "dflash"})
    assert ("--spec-dflash-max-slots", "3") in words(made)


def test_placement_of_the_draft_model_follows_the_target_unless_it_is_given():
    made = make("llama.cpp", draft=DRAFT, gpu_layers=10, speculation={"kind": "draft"})
    assert ("--spec-draft-ngl", "10") in words(made)
    own = {"kind": "draft", "draft_gpu_layers": "all", "draft_devices": ["CUDA1"]}
    made = make("llama.cpp", draft=DRAFT, gpu_layers=10, speculation=own)
    assert {("--spec-draft-ngl", "all"), ("--spec-draft-device", "CUDA1")} <= words(made)


def test_quantised_context_of_a_draft_model_is_warned_of():
    made = draft("llama.cpp", "draft", draft_kv_type_k="q8_0", draft_kv_type_v="f16")
    assert {("--spec-draft-type-k", "q8_0"), ("--spec-draft-type-v", "f16")} <= words(made)
    assert codes(made) == ([], ["draft-kv"])


def test_context_of_a_draft_model_in_an_unknown_storage_is_refused():
    assert codes(draft("llama.cpp", "draft", draft_kv_type_k="turbo3"))[0] == ["draft_kv_type_k"]


@pytest.mark.parametrize(
    ("dialect", "adaptive", "expected", "warnings"),
    [
        ("bee-0.3", "profit", ("--spec-dm-controller", "profit"), []),
        ("bee-0.3", "off", ("--no-spec-dm-adaptive",), []),
        ("bee-0.4", "off", ("--spec-dm-controller", "off"), []),
        ("bee-0.4", "fringe", None, ["adaptive"]),
        ("llama.cpp", "profit", None, ["adaptive"]),
        ("llama.cpp", "off", None, []),
        ("ik", "profit", ("--spec-autotune",), []),
    ],
)
def test_length_that_follows_the_gain(
    dialect: DialectName, adaptive: str, expected: tuple[str, ...] | None, warnings: list[str]
):
    made = draft(dialect, "dflash", adaptive=adaptive)
    assert expected is None or expected in words(made)
    assert codes(made) == ([], warnings)


def test_tree_of_drafts_is_beellamas_own():
    assert ("--spec-branch-budget", "8") in words(draft("bee-0.3", "dflash", branch_budget=8))
    assert codes(draft("llama.cpp", "dflash", branch_budget=8)) == ([], ["branch_budget"])


def test_no_speculation_leaves_no_word_about_it():
    assert not [word for word in make("llama.cpp", draft=DRAFT).argv if "spec" in word or "draft" in word]


def test_mtp_may_have_its_layers_in_a_file_of_their_own():
    made = draft("llama.cpp", "mtp", n_max=3)
    assert {("--spec-draft-model", "d.gguf"), ("--spec-draft-n-max", "3")} <= words(made)
    assert "--spec-draft-model" not in without_model("llama.cpp", "mtp").argv


@pytest.mark.parametrize(
    ("dialect", "layers", "device"),
    [("bee-0.3", 0, "none"), ("bee-0.3", "auto", None), ("bee-0.4", 0, None), ("llama.cpp", 0, None)],
)
def test_drafter_that_would_look_for_a_gpu_is_told_not_to(
    dialect: DialectName, layers: int | str, device: str | None
):
    made = make(dialect, draft=DRAFT, gpu_layers=layers, speculation={"kind": "dflash"})
    devices = [word[1] for word in words(made) if word[0] == "--spec-draft-device"]
    assert devices == ([device] if device else [])
