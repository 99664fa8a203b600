"""The estimate of memory against what the engine reports, and what is made of it."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from agent.core.errors import ModelFileError, UsageError
from agent.server.fit import MIB, ServerSettings, estimate, layers_of, row_bytes
from agent.server.fit_report import FitReport, fit_report, render_fit, settings_of, shown_size
from agent.server.fit_suggest import Budget, largest_context, most_gpu_layers, suggest
from agent.server.gguf import read_header
from agent.server.hardware import Gpu, Hardware
from agent.server.model_shape import ModelShape, shape_of
from agent.server.profile import ForkKvType, Profile, UpstreamKvType
from tests.server import gguf_models
from tests.server.engine_memory import Case, assert_near, read_measured, recorded_cases

GIB = 1024 * MIB


@pytest.mark.parametrize("case", recorded_cases(), ids=lambda case: case.name)
def test_the_estimate_is_near_what_the_engine_reported(case: Case):
    draft = shape_of(case.draft) if case.draft else None
    need = estimate(shape_of(case.target), draft, case.settings)
    assert_near(need, read_measured(case.lines))


def test_the_record_has_every_kind_of_model_and_setting():
    cases = recorded_cases()
    architectures = {case.target.architecture for case in cases}
    assert {"llama", "qwen2", "qwen3", "qwen3moe", "gemma3", "gemma4", "qwen35"} <= architectures
    assert {case.settings.speculation for case in cases} == {"none", "draft", "dflash", "mtp"}


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> ModelShape:
    path = tmp_path_factory.mktemp("fit") / "dense.gguf"
    return shape_of(
        read_header(gguf_models.dense(path, layers=8, width=1024, inner=3072, heads=8, kv_heads=8))
    )


def test_what_quantised_caches_take():
    assert [row_bytes(1024, kind) for kind in ("f16", "q8_0", "q4_0")] == [2048, 1088, 576]
    with pytest.raises(UsageError, match="turbo9"):
        row_bytes(1024, "turbo9")


@pytest.mark.parametrize("kv_type", get_args(UpstreamKvType) + get_args(ForkKvType))
def test_every_type_that_a_profile_may_name_has_a_size(kv_type: str):
    bits = row_bytes(1024, kv_type) * 8 / 1024
    named = re.search(r"\d+", kv_type)
    assert named is not None
    assert int(named[0]) <= bits <= int(named[0]) + 2


def test_what_the_caches_of_forks_take():
    assert row_bytes(1024, "turbo3") == 400
    assert row_bytes(1024, "kvarn4") == 560


def server_profile(**changes: Any) -> Profile:
    table = {"name": "p", "engine": "llama-server", "target": {"file": "t.gguf"}, "draft": {"file": "d.gguf"}}
    return Profile.model_validate({**table, **changes})


def test_settings_that_a_profile_makes_reach_the_estimate():
    speculation = {
        "kind": "dflash",
        "draft_kv_type_k": "q8_0",
        "draft_kv_type_v": "q4_0",
        "cross_context": 1024,
    }
    profile = server_profile(
        dialect="bee-0.3", unified_kv=True, swa_full=True, cache_ram_mib=0, speculation=speculation
    )
    settings = settings_of(profile)
    assert settings.unified_kv
    assert settings.full_window_cache
    assert (settings.draft_kv_type_k, settings.draft_kv_type_v) == ("q8_0", "q4_0")
    assert settings.draft_window == 1024
    assert settings.cache_ram_bytes == 0


@pytest.mark.parametrize(
    ("dialect", "cross_context", "window"),
    [
        ("bee-0.3", None, 512),
        ("bee-0.4", 1024, None),
        ("llama.cpp", 1024, None),
        ("ik", 256, 256),
        ("ik", None, None),
    ],
)
def test_only_some_families_give_a_drafter_a_window(
    dialect: str, cross_context: int | None, window: int | None
):
    speculation = {"kind": "dflash", "cross_context": cross_context}
    assert settings_of(server_profile(dialect=dialect, speculation=speculation)).draft_window == window


def test_prompt_cache_that_a_profile_does_not_speak_of_is_what_the_server_has_itself():
    assert settings_of(server_profile()).cache_ram_bytes == 8 * GIB
    assert settings_of(server_profile(cache_ram_mib=100)).cache_ram_bytes == 100 * MIB
    embedded = Profile.model_validate({"name": "p", "target": {"file": "t.gguf"}})
    assert settings_of(embedded).cache_ram_bytes == GIB


def test_layers_on_the_gpu_take_their_part_of_weights_and_cache_along(dense: ModelShape):
    settings = ServerSettings(context=4096)
    on_processor = estimate(dense, None, settings)
    assert on_processor.gpu == 0
    half = estimate(dense, None, replace(settings, gpu_layers=5))
    cache = next(row for row in half.rows if row.part == "kv")
    assert cache.gpu == cache.ram
    assert half.part("kv") == on_processor.part("kv")
    assert half.part("weights") == on_processor.part("weights")
    everything = estimate(dense, None, replace(settings, gpu_layers=layers_of(dense)))
    weights = next(row for row in everything.rows if row.part == "weights")
    assert weights.ram == dense.weights.embedding


def test_experts_that_stay_in_ram_are_counted_there(tmp_path: Path):
    model = gguf_models.mixture(
        tmp_path / "m.gguf", layers=4, width=256, expert=128, experts=8, used=2, vocabulary=512
    )
    shape = shape_of(read_header(model))
    experts = shape.weights.experts
    assert len(experts) == 4
    assert 0 < sum(experts) < sum(shape.weights.layers)
    all_on_gpu = ServerSettings(context=4096, gpu_layers=layers_of(shape))
    before = estimate(shape, None, all_on_gpu)
    for count in (2, 10_000):
        after = estimate(shape, None, replace(all_on_gpu, cpu_moe_layers=count))
        moved = sum(experts[:count])
        assert (before.gpu - after.gpu, after.ram - before.ram) == (moved, moved)


@pytest.mark.parametrize(("said", "counted"), [("all", 10_000), (3, 3), (None, 0)])
def test_layers_whose_experts_stay_in_ram_reach_the_estimate(said: Any, counted: int):
    table = {"name": "p", "engine": "llama-server", "target": {"file": "m.gguf"}, "cpu_moe_layers": said}
    assert settings_of(Profile.model_validate(table)).cpu_moe_layers == counted


def test_an_embedding_that_is_the_output_too_is_on_both_sides(tmp_path: Path):
    path = gguf_models.gemma3(tmp_path / "tied.gguf", layers=2, width=256, inner=512, vocabulary=320)
    shape = shape_of(read_header(path))
    need = estimate(shape, None, ServerSettings(context=4096, gpu_layers=layers_of(shape)))
    assert need.part("weights") == shape.weights.total + shape.weights.embedding


def test_a_windowed_draft_needs_less_than_one_with_the_whole_context(dense: ModelShape, tmp_path: Path):
    drafter = gguf_models.dflash(tmp_path / "drafter.gguf", width=1024, heads=8, kv_heads=8)
    draft = shape_of(read_header(drafter))
    settings = ServerSettings(context=65536, speculation="dflash", n_max=15)
    whole = estimate(dense, draft, settings).part("draft kv")
    windowed = estimate(dense, draft, replace(settings, draft_window=1024)).part("draft kv")
    assert whole == 65536 * 2 * row_bytes(8 * 32, "f16") * 2
    assert windowed == whole * 1536 // 65536


def test_older_engines_keep_the_logits_of_a_whole_batch(tmp_path: Path):
    path = gguf_models.gemma3(tmp_path / "wide.gguf", layers=2, width=256, inner=512, vocabulary=64000)
    shape = shape_of(read_header(path))
    settings = ServerSettings(context=4096)
    older = estimate(shape, None, replace(settings, logits_of_whole_batch=True)).part("compute")
    assert older >= 512 * 64000 * 4 > estimate(shape, None, settings).part("compute")


def test_what_it_grows_to_in_use_is_told_apart(tmp_path: Path):
    path = gguf_models.gemma3(tmp_path / "gemma3.gguf", layers=6, width=256, inner=512, vocabulary=320)
    settings = ServerSettings(context=8192, cache_ram_bytes=GIB)
    need = estimate(shape_of(read_header(path)), None, settings)
    # 32 checkpoints of a window of 1024 tokens in five layers with keys and values of 1024 elements.
    assert need.ram_later == GIB + 32 * 1024 * 5 * 2 * 2048
    assert need.ram == sum(row.ram for row in need.rows) - need.ram_later


def test_the_longest_context_fits_and_a_longer_one_does_not(dense: ModelShape):
    settings = ServerSettings(context=4096)
    budget = Budget(0, estimate(dense, None, replace(settings, context=30_000)).ram)
    longest = largest_context(dense, None, settings, budget)
    assert longest == 29 * 1024
    assert budget.left(estimate(dense, None, replace(settings, context=longest))) >= 0
    assert largest_context(dense, None, settings, Budget(0, 10 * MIB)) == 0
    assert largest_context(dense, None, settings, Budget(0, 1024 * GIB)) == dense.trained_context


def test_every_suggestion_saves_what_it_says(dense: ModelShape):
    settings = ServerSettings(context=32768, slots=2, gpu_layers=layers_of(dense))
    need = estimate(dense, None, settings)
    budget = Budget(need.gpu - 100 * MIB, 64 * GIB)
    found = {one.change: one for one in suggest(dense, None, settings, budget)}
    quantised = replace(settings, kv_type_k="q8_0", kv_type_v="q8_0")
    saved = need.gpu - estimate(dense, None, quantised).gpu
    assert found['kv_type_k = "q8_0", kv_type_v = "q8_0"'].saves == saved
    assert found["slots = 1"].fits
    assert not found["ubatch = 256"].fits
    assert any(change.startswith("gpu_layers = ") for change in found)


def test_what_leaves_the_gpu_saves_what_it_took_there(dense: ModelShape):
    settings = ServerSettings(context=32768, gpu_layers=layers_of(dense))
    need = estimate(dense, None, settings)
    found = suggest(dense, None, settings, Budget(10 * MIB, 64 * GIB))
    [off] = [one for one in found if one.change == "gpu_layers = 0"]
    assert (off.saves, off.fits) == (need.gpu, True)


def test_smaller_types_than_the_present_ones_are_suggested_only(dense: ModelShape):
    settings = ServerSettings(context=32768, kv_type_k="q5_0", kv_type_v="q4_1")
    changes = [one.change for one in suggest(dense, None, settings, Budget(0, 64 * GIB))]
    assert [change for change in changes if "kv_type" in change] == ['kv_type_k = "q4_0", kv_type_v = "q4_0"']


def test_quantised_caches_are_suggested_together_with_flash_attention(dense: ModelShape):
    settings = ServerSettings(context=4096, flash_attention=False)
    changes = [one.change for one in suggest(dense, None, settings, Budget(0, 64 * GIB))]
    assert 'kv_type_k = "q8_0", kv_type_v = "q8_0", flash_attention = "auto"' in changes


def test_when_no_change_is_enough_several_together_are_tried(dense: ModelShape):
    settings = ServerSettings(context=65536, slots=2)
    small = ServerSettings(context=16384, ubatch=256, kv_type_k="q4_0", kv_type_v="q4_0")
    budget = Budget(0, estimate(dense, None, small).ram)
    found = suggest(dense, None, settings, budget)
    assert [one.fits for one in found] == [False] * (len(found) - 1) + [True]
    assert "slots = 1, context = 16384" in found[-1].change
    hopeless = suggest(dense, None, settings, Budget(0, 10 * MIB))
    assert not any(one.fits for one in hopeless)


def test_as_many_layers_as_fit_go_to_the_gpu(dense: ModelShape):
    settings = ServerSettings(context=4096)
    budget = Budget(estimate(dense, None, replace(settings, gpu_layers=4)).gpu + 1, 64 * GIB)
    assert most_gpu_layers(dense, None, settings, budget) == 4


@pytest.fixture
def machine() -> Hardware:
    return Hardware("cpu", 8, 16, 64 * GIB, 48 * GIB, 500 * GIB)


@pytest.fixture
def report_of(tmp_path: Path, machine: Hardware):
    gguf_models.dense(tmp_path / "model.gguf", layers=8, width=1024, inner=3072, heads=8, kv_heads=8)
    gguf_models.dflash(tmp_path / "drafter.gguf", width=1024, heads=8, kv_heads=8, target_layers=(1, 4))

    def report(
        changes: dict[str, Any] | None = None, *, hardware: Hardware = machine, gpu: bool | None = None
    ) -> FitReport:
        table = {"name": "trial", "context": 8192, "target": {"file": "model.gguf"}, **(changes or {})}
        return fit_report(Profile.model_validate(table), tmp_path, hardware, gpu=gpu)

    return report


def with_gpu(machine: Hardware, free: int, unified: bool = False) -> Hardware:
    return replace(machine, gpus=(Gpu("RTX 4090", 24 * GIB, free, "8.9", unified=unified),))


def test_the_report_says_what_is_needed_and_what_would_be_left(report_of):
    report = report_of()
    assert (report.verdict, report.usable) == ("fits", True)
    assert report.left == 48 * GIB - report.need.ram
    text = render_fit(report)
    assert "KV cache, 8192 tokens, f16" in text
    assert "Fits: " in text
    assert "GPU" not in text


def test_a_machine_that_is_too_small_gets_changes_that_help(report_of, machine: Hardware):
    need = report_of().need.ram
    report = report_of(hardware=replace(machine, ram_available=need - 20 * MIB))
    assert (report.verdict, report.usable) == ("too big", False)
    text = render_fit(report)
    assert "Does not fit: 21 MB are missing." in text
    assert 'kv_type_k = "q8_0", kv_type_v = "q8_0"' in text
    assert any(one.fits for one in report.suggestions)


def test_little_left_is_called_tight(report_of, machine: Hardware):
    need = report_of().need.ram
    report = report_of(hardware=replace(machine, ram_available=need + MIB))
    assert report.verdict == "tight"
    assert "tight" in render_fit(report)


def test_the_embedded_engine_leaves_the_gpu_alone_unless_told_otherwise(report_of, machine: Hardware):
    hardware = with_gpu(machine, 20 * GIB)
    assert report_of(hardware=hardware).need.gpu == 0
    assert "RTX 4090: not used" in render_fit(report_of(hardware=hardware))
    on_gpu = report_of(hardware=hardware, gpu=True)
    assert on_gpu.need.gpu > on_gpu.need.part("kv")
    assert on_gpu.settings.gpu_layers == on_gpu.layers


def test_automatic_layers_fill_a_small_gpu_and_leave_the_rest(report_of, machine: Hardware):
    whole = report_of(hardware=with_gpu(machine, 20 * GIB), gpu=True)
    small = with_gpu(machine, whole.need.gpu - 50 * MIB)
    report = report_of(hardware=small, gpu=True)
    assert report.verdict == "partly"
    assert 0 < report.settings.gpu_layers < report.layers
    assert "layers go to the GPU" in render_fit(report)
    assert report_of({"gpu_layers": "all"}, hardware=small, gpu=True).verdict == "too big"


def test_memory_that_is_shared_is_not_counted_twice(report_of, machine: Hardware):
    whole = report_of(hardware=with_gpu(machine, 20 * GIB), gpu=True)
    enough_each = max(whole.need.gpu, whole.need.ram) + MIB
    shared = replace(with_gpu(machine, enough_each, unified=True), ram_available=enough_each)
    assert report_of({"gpu_layers": "all"}, hardware=shared, gpu=True).verdict == "too big"
    apart = replace(with_gpu(machine, enough_each), ram_available=enough_each)
    assert report_of({"gpu_layers": "all"}, hardware=apart, gpu=True).verdict != "too big"


def test_a_draft_is_part_of_the_need_and_is_checked(report_of):
    drafting = {"draft": {"file": "drafter.gguf"}, "speculation": {"kind": "dflash", "n_max": 99}}
    report = report_of(drafting)
    parts = {row.part for row in report.need.rows}
    assert {"draft weights", "draft kv", "draft compute"} <= parts
    assert [finding.code for finding in report.findings] == ["n-max"]
    assert "warning: n_max is 99" in render_fit(report)
    assert 'speculation.kind = "ngram-mod"' in render_fit(report)


def test_a_pair_that_does_not_fit_is_not_usable_however_much_memory_there_is(report_of):
    report = report_of({"draft": {"file": "drafter.gguf"}, "speculation": {"kind": "draft"}})
    assert (report.verdict, report.usable) == ("fits", False)
    assert "refusal: " in render_fit(report)


@pytest.mark.parametrize(("dialect", "usable"), [("bee-0.3", True), ("llama.cpp", False), (None, False)])
def test_drafter_in_the_old_layout_is_only_for_the_servers_that_read_it(
    report_of, tmp_path: Path, dialect: str | None, usable: bool
):
    layout: dict[str, Any] = {"architecture": "dflash-draft", "width": 1024, "heads": 8, "kv_heads": 8}
    gguf_models.dflash(tmp_path / "drafter.gguf", target_layers=(1, 4), **layout)
    changes = {"draft": {"file": "drafter.gguf"}, "speculation": {"kind": "dflash"}, "dialect": dialect}
    report = report_of({"engine": "llama-server", **changes})
    assert report.usable is usable
    assert [one.code for one in report.findings] == ([] if usable else ["layout"])


def test_settings_that_the_engine_refuses_are_found(report_of):
    report = report_of({"flash_attention": "off", "kv_type_v": "q8_0"})
    assert not report.usable
    assert "needs flash attention" in render_fit(report)


def test_more_context_than_the_model_knows_is_a_warning(report_of):
    report = report_of({"context": 200_000})
    assert [finding.code for finding in report.findings] == ["context"]
    assert report.usable


def test_growth_beyond_the_memory_is_a_note(report_of, machine: Hardware):
    need = report_of().need.ram
    report = report_of({"cache_ram_mib": 4096}, hardware=replace(machine, ram_available=need + GIB))
    assert any("cache_ram_mib" in note for note in report.notes)


def test_a_missing_file_and_a_server_elsewhere_are_errors(report_of, tmp_path: Path, machine: Hardware):
    size = {"sha256": "0" * 64, "bytes": 3 * GIB}
    with pytest.raises(ModelFileError, match=r"missing\.gguf is not there; it has 3\.22 GB"):
        report_of({"target": {"file": "missing.gguf", **size}})
    elsewhere = Profile.model_validate({"name": "far", "engine": "remote", "url": "http://127.0.0.1:1"})
    with pytest.raises(UsageError, match="runs elsewhere"):
        fit_report(elsewhere, tmp_path, machine)


def test_a_profile_without_a_number_drafts_as_the_engine_would(tmp_path: Path):
    table: dict[str, Any] = {"name": "trial", "target": {"file": "a"}, "draft": {"file": "b"}}
    drafter = shape_of(read_header(gguf_models.dflash(tmp_path / "drafter.gguf", block_size=8)))
    for kind, expected in (("dflash", 7), ("draft", 3)):
        profile = Profile.model_validate({**table, "speculation": {"kind": kind}})
        assert settings_of(profile, drafter).n_max == expected


def test_sizes_are_shown_in_the_unit_that_fits():
    assert [shown_size(size) for size in (0, 448 * MIB, 3 * GIB // 2)] == ["0 MB", "470 MB", "1.61 GB"]
