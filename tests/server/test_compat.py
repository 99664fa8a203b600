"""Pairs of target and draft: each that would not work is found before a start, with a remedy."""

from pathlib import Path
from typing import Any

import pytest

from agent.server.compat import GIVES_HIDDEN_STATES, KEEPS_HIDDEN_STATES, Finding, check_files, layouts_of
from tests.server import gguf_models


class Pairs:
    """Writes a target and a draft and checks them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.target = gguf_models.dense(folder / "target.gguf", layers=8)

    def with_target(self, **changes: Any) -> "Pairs":
        self.target = gguf_models.dense(self._folder / "target.gguf", **{"layers": 8, **changes})
        return self

    def dflash(self, n_max: int | None = None, layouts: tuple[str, ...] = ("dflash",), **changes: Any):
        draft = gguf_models.dflash(self._folder / "draft.gguf", **changes)
        return check_files("dflash", self.target, draft, n_max=n_max, layouts=layouts)

    def plain(self, **changes: Any):
        draft = gguf_models.dense(self._folder / "draft.gguf", **{"layers": 1, **changes})
        return check_files("draft", self.target, draft)

    def eagle3(self, **changes: Any):
        keys = {"extract_layers": [1, 3, 5], "target_hidden_size": 64, **changes}
        keys = {key: value for key, value in keys.items() if value is not None}
        draft = gguf_models.dense(self._folder / "draft.gguf", architecture="eagle3", layers=1, **keys)
        return check_files("eagle3", self.target, draft)


@pytest.fixture
def pairs(tmp_path: Path) -> Pairs:
    return Pairs(tmp_path)


def codes(found: tuple[Finding, ...]) -> list[tuple[str, str]]:
    return [(one.severity, one.code) for one in found]


def test_nothing_is_said_about_pairs_that_fit(pairs: Pairs):
    assert pairs.dflash(n_max=15) == ()
    assert pairs.plain() == ()
    assert pairs.eagle3() == ()


def test_kinds_without_a_second_model_need_no_check(pairs: Pairs):
    assert check_files("ngram-mod", pairs.target, None) == ()
    assert codes(check_files("dflash", pairs.target, None)) == [("refusal", "no-draft")]


def test_every_finding_says_what_to_do(pairs: Pairs):
    found = pairs.with_target(architecture="gemma3").dflash(width=128, target_layers=(1, 99), n_max=99)
    assert len(found) == 4
    assert all(one.reason and one.remedy for one in found)


@pytest.mark.parametrize(("layer", "refused"), [(0, False), (7, False), (8, False), (9, True)])
def test_the_layers_that_a_drafter_reads_must_be_there(pairs: Pairs, layer: int, refused: bool):
    """The number after the last layer stands for the output of the last one."""
    found = pairs.dflash(target_layers=(1, layer))
    assert codes(found) == ([("refusal", "target-layers")] if refused else [])


def test_a_drafter_without_target_layers_is_refused(pairs: Pairs):
    assert codes(pairs.dflash(target_layers=None)) == [("refusal", "target-layers")]


def test_a_drafter_for_another_hidden_size_is_refused(pairs: Pairs):
    (found,) = pairs.dflash(width=128)
    assert found.code == "hidden-size"
    assert "128" in found.reason
    assert "64" in found.reason


def test_the_old_layout_is_refused_by_engines_that_do_not_read_it(pairs: Pairs):
    (found,) = pairs.dflash(architecture="dflash-draft")
    assert (found.severity, found.code) == ("refusal", "layout")
    assert "convert" in found.remedy
    assert pairs.dflash(architecture="dflash-draft", layouts=("dflash-draft",)) == ()


def test_the_old_layout_says_the_same_in_keys_of_its_own(pairs: Pairs):
    nested = {"dflash.block_size": 8, "dflash.mask_token_id": 3, "dflash.target_layer_ids": [1, 99]}
    other = {"block_size": None, "target_layers": None, "tokenizer.ggml.mask_token_id": None}
    drafter = {"architecture": "dflash-draft", "layouts": ("dflash-draft",), **other, **nested}
    layers, n_max = pairs.dflash(n_max=9, **drafter)
    assert (layers.code, "layer 99" in layers.reason) == ("target-layers", True)
    assert (n_max.code, "blocks of 8" in n_max.reason) == ("n-max", True)


def test_the_new_layout_is_refused_by_old_engines(pairs: Pairs):
    assert codes(pairs.dflash(layouts=("dflash-draft",))) == [("refusal", "layout")]


def test_another_programs_layout_is_refused(pairs: Pairs):
    assert codes(pairs.dflash(architecture="gemma4-dflash-draft")) == [("refusal", "layout")]


def test_an_ordinary_model_is_no_dflash_drafter(pairs: Pairs, tmp_path: Path):
    plain = gguf_models.dense(tmp_path / "plain.gguf")
    (found,) = check_files("dflash", pairs.target, plain)
    assert (found.code, 'speculation.kind = "draft"' in found.remedy) == ("kind", True)


def test_a_dflash_drafter_is_no_ordinary_draft_model(pairs: Pairs, tmp_path: Path):
    drafter = gguf_models.dflash(tmp_path / "drafter.gguf")
    (found,) = check_files("draft", pairs.target, drafter)
    assert (found.code, 'speculation.kind = "dflash"' in found.remedy) == ("kind", True)


def test_targets_that_keep_their_hidden_states_are_refused(pairs: Pairs):
    (found,) = pairs.with_target(architecture="gemma3").dflash()
    assert (found.severity, found.code) == ("refusal", "target")
    assert "aborts" in found.reason


def test_an_unknown_target_is_only_a_warning(pairs: Pairs):
    assert codes(pairs.with_target(architecture="brand-new").dflash()) == [("warning", "target")]


def test_no_architecture_is_in_both_lists():
    assert not GIVES_HIDDEN_STATES & KEEPS_HIDDEN_STATES


def test_drafting_more_than_a_block_is_a_warning_with_the_number(pairs: Pairs):
    (found,) = pairs.dflash(n_max=16)
    assert (found.severity, found.code) == ("warning", "n-max")
    assert "n_max = 15" in found.remedy


def test_a_drafter_without_a_mask_token_is_a_warning(pairs: Pairs):
    unknown: dict[str, Any] = {"tokenizer.ggml.mask_token_id": None}
    assert codes(pairs.dflash(**unknown)) == [("warning", "mask-token")]


def test_drafters_of_later_kinds_are_told_apart(pairs: Pairs):
    assert codes(pairs.dflash(extra_tensors=("selector_hidden.weight",))) == [("warning", "dflash2")]
    assert codes(pairs.dflash(extra_tensors=("markov_w1.weight",))) == [("refusal", "dspark")]


def test_a_dflash_2_drafter_is_nothing_to_warn_of_where_the_engine_reads_it(pairs: Pairs):
    assert pairs.dflash(layouts=layouts_of("llama.cpp"), extra_tensors=("selector_hidden.weight",)) == ()


def test_a_quantised_draft_cache_is_a_warning(pairs: Pairs, tmp_path: Path):
    draft = gguf_models.dflash(tmp_path / "drafter.gguf")
    assert codes(check_files("dflash", pairs.target, draft, draft_kv_type="q8_0")) == [
        ("warning", "draft-kv")
    ]


def test_a_draft_with_other_tokens_is_refused(pairs: Pairs, tmp_path: Path):
    tokens = gguf_models.byte_tokens(320)
    tokens[300] = "another"
    keys = gguf_models.common_keys(1, 64, 2, 1, 128, 32)
    draft = gguf_models.write_gguf(tmp_path / "draft.gguf", "qwen3", keys, [], tokens=tokens)
    (found,) = check_files("draft", pairs.target, draft)
    assert (found.severity, found.code) == ("refusal", "tokenizer")
    assert "without drafting" in found.reason


def test_vocabularies_may_differ_by_a_few_tokens_at_the_end_and_special_ones(pairs: Pairs, tmp_path: Path):
    keys = gguf_models.common_keys(1, 64, 2, 1, 128, 32)
    for count, expected in ((320 + 128, []), (320 + 129, [("refusal", "tokenizer")])):
        tokens = ["<pad>", *gguf_models.byte_tokens(count)[1:]]
        draft = gguf_models.write_gguf(tmp_path / "draft.gguf", "qwen3", keys, [], tokens=tokens)
        assert codes(check_files("draft", pairs.target, draft)) == expected


def test_another_kind_of_tokenizer_is_refused(pairs: Pairs, tmp_path: Path):
    draft = gguf_models.dense(tmp_path / "draft.gguf", layers=1)
    content = draft.read_bytes()
    kind = content.index(b"tokenizer.ggml.model") + len("tokenizer.ggml.model") + 4 + 8
    assert content[kind : kind + 5] == b"llama"
    draft.write_bytes(content[:kind] + b"gemma" + content[kind + 5 :])
    (found,) = check_files("draft", pairs.target, draft)
    assert "'llama' and 'gemma'" in found.reason


def test_a_draft_nearly_as_large_as_its_target_is_a_warning(pairs: Pairs):
    assert codes(pairs.plain(layers=8)) == [("warning", "draft-size")]


def test_mtp_needs_a_target_with_layers_for_it(pairs: Pairs, tmp_path: Path):
    assert codes(check_files("mtp", pairs.target, None)) == [("refusal", "no-mtp")]
    able = gguf_models.hybrid(tmp_path / "able.gguf", predicting=1)
    assert check_files("mtp", able, None) == ()


def test_mtp_layers_that_were_left_out_of_the_file_are_noticed(pairs: Pairs):
    pairs.with_target(nextn_predict_layers=1)
    (found,) = check_files("mtp", pairs.target, None)
    assert "left out" in found.reason


def test_eagle3_drafters_are_checked_like_the_engine_does(pairs: Pairs):
    assert codes(pairs.eagle3(target_hidden_size=128)) == [("refusal", "hidden-size")]
    assert codes(pairs.eagle3(extract_layers=[1, 2])) == [("refusal", "layer-count")]
    assert codes(pairs.eagle3(extract_layers=None)) == [("refusal", "target-layers")]
    assert codes(pairs.eagle3(vocabulary=300)) == [("refusal", "tokenizer")]
    assert codes(check_files("eagle3", pairs.target, pairs.target)) == [("refusal", "kind")]


def test_files_for_other_machines_are_refused(pairs: Pairs, tmp_path: Path):
    keys = gguf_models.common_keys(1, 64, 2, 1, 128, 32)
    draft = gguf_models.write_gguf(tmp_path / "big.gguf", "qwen3", keys, [], big_endian=True)
    assert codes(check_files("draft", pairs.target, draft)) == [("refusal", "byte-order")]
