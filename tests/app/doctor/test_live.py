"""What a running server is asked, and how its answers are judged."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agent.app.doctor.finding import Finding
from agent.app.doctor.live import Live
from agent.bench.baseline import Baseline
from tests.conftest import StartServer
from tests.fakes.script import Step, call

Ask = Callable[..., Any]


def baseline(rate: float) -> Baseline:
    return Baseline(
        profile="box", suite="coding", decode_rate=rate, prompt_rate=None, speculation="none",
        accept_rate=None, machine="", samples=2, measured_at="2026-01-02T03:04:05",
    )  # fmt: skip


async def found_by(look: Live) -> dict[str, Finding]:
    return {finding.code: finding async for finding in look.examine()}


async def test_slower_than_its_baseline_is_a_warning(live: Ask, scripted_server: StartServer):
    server = scripted_server(Step(text="class A: pass", times=0))
    usual = await found_by(live(server, baseline=baseline(110)))
    slow = await found_by(live(server, baseline=baseline(300)))
    assert (usual["speed"].level, slow["speed"].level) == ("ok", "warning")
    assert slow["speed"].message == "100.0 tok/s, 300.0 when it was measured last"


async def test_acceptance_is_judged(live: Ask, scripted_server: StartServer):
    good = scripted_server(Step(text="class A: pass", drafted=6, accepted=3, times=0))
    bad = scripted_server(Step(text="class A: pass", drafted=60, accepted=3, times=0))
    looks = [await found_by(live(server, speculation="dflash")) for server in (good, bad)]
    assert [found["drafting"].level for found in looks] == ["ok", "warning"]
    assert looks[0]["drafting"].message == "dflash: 6 tokens drafted, 50% accepted"


async def test_model_that_only_talks_is_a_warning_about_tool_calls(live: Ask, scripted_server: StartServer):
    found = await found_by(live(scripted_server(Step(text="No.", times=0))))
    assert found["tool-call"].level == "warning"
    assert "constrained" in found["tool-call"].remedy


async def test_call_and_its_result_and_a_bound_reply_make_a_round_trip(
    live: Ask, scripted_server: StartServer
):
    glob = call("glob", pattern="*.md")
    server = scripted_server("warm", "warm", glob, "README.md", replace(glob, times=0))
    found = await found_by(live(server))
    assert found["tool-call"].message == "native tool calls work, there and back (glob)"
    assert found["constrained"].level == "ok"
    assert server.chats[3].body["messages"][-1]["role"] == "tool"


async def test_server_that_refuses_is_a_problem_and_the_other_questions_are_asked(
    live: Ask, scripted_server: StartServer
):
    found = await found_by(live(scripted_server("Hello", api_key="another")))
    assert found["speed"].level == "problem"
    assert found["tool-call"].level == "problem"


async def test_what_there_is_no_time_for_is_named(live: Ask, scripted_server: StartServer):
    ticks = itertools.chain([0.0, 0.0, 100.0], itertools.repeat(100.0))
    look = live(scripted_server(Step(text="x", times=0)), clock=lambda: next(ticks))
    found = await found_by(look)
    assert found["live"].message == "not finished within 55 s: prefix, tool-call, constrained, speed"
