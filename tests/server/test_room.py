"""The memory that a server needs against what is free, right before it is started."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.core.errors import ServerError
from agent.server.caps import built_in
from agent.server.hardware import Gpu, Hardware
from agent.server.launch import LaunchPlan
from agent.server.process import Supervisor
from agent.server.room import Shortage, shortage
from tests.server import gguf_models
from tests.server.conftest import MakePlan, make_profile, starts

GIB = 2**30
MIB = 2**20
DRAFTING = {"draft": {"file": "drafter.gguf"}, "speculation": {"kind": "dflash"}}
Missing = Callable[..., Shortage | None]


def machine(*, gpu: int | None = None, ram: int = 32 * GIB, unified: bool = False) -> Hardware:
    gpus = () if gpu is None else (Gpu("RTX 4090", 24 * GIB, gpu, "8.9", unified=unified),)
    return Hardware("cpu", 8, 16, 64 * GIB, ram, 500 * GIB, gpus)


@pytest.fixture
def missing(tmp_path: Path) -> Missing:
    """What is missing for a llama-server with 58 MB of weights, 67 MB of context, and `changes`."""
    model = gguf_models.dense(tmp_path / "model.gguf", layers=8, width=1024, inner=3072, heads=8, kv_heads=8)
    draft = gguf_models.dflash(
        tmp_path / "drafter.gguf", width=1024, heads=8, kv_heads=8, target_layers=(1, 4)
    )

    def look(hardware: Hardware, dialect: Any = "llama.cpp", **changes: Any) -> Shortage | None:
        table = {"engine": "llama-server", "gpu_layers": "all", "context": 8192, **changes}
        plan = LaunchPlan(
            profile=make_profile(**table),
            fingerprint="f",
            model_path=model,
            draft_path=draft if "draft" in changes else None,
            runtime_folder=tmp_path,
            log_folder=tmp_path,
            capabilities=built_in(dialect),
        )
        return shortage(plan, lambda _folder: hardware)

    return look


def test_server_that_fits_lacks_nothing(missing: Missing):
    assert missing(machine(gpu=8 * GIB)) is None


def test_weights_and_context_that_are_more_than_is_free_are_certain_and_listed(missing: Missing):
    found = missing(machine(gpu=100 * MIB), **DRAFTING)
    assert found is not None
    assert found.is_certain
    assert found.message.startswith("profile 'trial' does not fit on the GPU: ")
    for part in ("target weights ", "KV cache, 8192 tokens, f16 ", "draft weights ", "draft KV cache "):
        assert part in found.message
    assert found.message.endswith("and 105 MB are free")
    assert "`agent server fit trial` shows the whole" in found.hint


def test_change_that_would_do_is_named(missing: Missing):
    found = missing(machine(gpu=700 * MIB), kv_type_k="f32", kv_type_v="f32", context=16384)
    assert found is not None
    assert found.hint.startswith('set kv_type_k = "q8_0", kv_type_v = "q8_0" in the profile, or ')


def test_buffers_that_are_only_estimated_are_no_reason_to_refuse(missing: Missing):
    found = missing(machine(gpu=200 * MIB))
    assert found is not None
    assert not found.is_certain
    assert "needs about " in found.message


def test_layers_that_the_server_may_choose_itself_always_fit(missing: Missing):
    assert missing(machine(gpu=MIB), gpu_layers="auto") is None


def test_parts_that_are_put_elsewhere_are_not_guessed_about(missing: Missing):
    assert missing(machine(gpu=MIB), extra_args=["--override-tensor", "x=CPU"]) is None


def test_drafter_with_a_window_is_counted_as_the_program_at_hand_keeps_it(missing: Missing):
    changes: dict[str, Any] = {**DRAFTING, "context": 131072, "kv_type_k": "q4_0", "kv_type_v": "q4_0"}
    hardware = machine(gpu=500 * MIB)
    whole, window = missing(hardware, "llama.cpp", **changes), missing(hardware, "bee-0.3", **changes)
    assert whole is not None
    assert whole.is_certain
    assert window is None or not window.is_certain


def test_little_ram_is_a_warning(missing: Missing):
    found = missing(machine(ram=100 * MIB))
    assert found is not None
    assert (found.is_certain, "of memory, and 105 MB are free" in found.message) == (False, True)


def test_file_that_cannot_be_read_is_left_to_the_server(plan: MakePlan):
    made = plan()
    made.model_path.write_bytes(b"no model")
    assert shortage(made, lambda _folder: machine(ram=0)) is None


@pytest.fixture
def heavy(plan: MakePlan, tmp_path: Path) -> LaunchPlan:
    """A plan of a server that takes 0.7 GB on a GPU. It has no program: nothing may come to that."""
    gguf_models.dense(tmp_path / "model.gguf", layers=8, width=1024, inner=3072, heads=8, kv_heads=8)
    profile = make_profile(engine="llama-server", gpu_layers="all", context=8192)
    return replace(plan(profile=profile), capabilities=built_in("llama.cpp"))


async def test_server_that_cannot_fit_is_not_started(heavy: LaunchPlan, tmp_path: Path):
    told: list[str] = []
    with pytest.raises(ServerError, match="does not fit on the GPU"):
        await Supervisor(
            heavy, lambda state, _seconds, _detail: told.append(state), lambda _folder: machine(gpu=MIB)
        ).ensure()
    assert starts(tmp_path) == []
    assert told[-1] == "failed"


async def test_memory_that_is_given_back_a_little_later_is_waited_for(heavy: LaunchPlan, tmp_path: Path):
    free = iter([MIB, MIB, 8 * GIB])
    told: list[str] = []
    patient = replace(heavy, busy_seconds=30.0)
    with pytest.raises(ServerError) as failed:
        await Supervisor(
            patient,
            lambda _state, _seconds, detail: told.append(detail),
            lambda _folder: machine(gpu=next(free)),
        ).ensure()
    assert "fit" not in failed.value.message
    assert told.count("waiting for memory to be free") == 2
    assert next(free, None) is None


async def test_little_ram_is_told_and_the_server_started(plan: MakePlan, tmp_path: Path):
    gguf_models.dense(tmp_path / "model.gguf", layers=8, width=1024, inner=3072, heads=8, kv_heads=8)
    warned: list[str] = []

    def report(state: str, _seconds: float, detail: str) -> None:
        warned.extend([detail] if state == "warning" else [])

    await Supervisor(plan(), report, lambda _folder: machine(ram=MIB)).ensure()
    assert [("of memory, and 1 MB are free" in one) for one in warned] == [True]
    assert len(starts(tmp_path)) == 1
