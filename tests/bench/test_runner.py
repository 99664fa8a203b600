"""The order of the runs, and what is kept when a server fails."""

import asyncio

import pytest

from agent.bench.result import BenchResult, Sample
from agent.bench.runner import WARM_UP_TOKENS, Runner, RunPlan, Step, blocks
from agent.core.errors import AgentError, ModelFileError, ServerError
from tests.bench.rig import OTHER_PROMPT, PROMPT, FakeContestant, order
from tests.conftest import StartServer
from tests.fakes.script import Step as Reply

ALWAYS = Reply(text="yes", times=0)


def empty(*contestants: FakeContestant) -> BenchResult:
    return BenchResult(suite="coding", started="", servers=[one.report for one in contestants])


@pytest.mark.parametrize(
    ("runs", "rounds", "expected"),
    [(3, 2, [[1, 2], [3]]), (3, 1, [[1, 2, 3]]), (2, 9, [[1], [2]]), (4, 2, [[1, 2], [3, 4]])],
)
def test_runs_are_spread_evenly_over_the_rounds(runs: int, rounds: int, expected: list[list[int]]):
    assert blocks(runs, rounds) == expected


async def test_servers_that_are_up_together_take_turns_request_by_request(scripted_server: StartServer):
    diary: list[str] = []
    pair = [FakeContestant(name, scripted_server(ALWAYS), diary) for name in "ab"]
    result = empty(*pair)
    await Runner(RunPlan(prompts=[PROMPT, OTHER_PROMPT], runs=2, together=True), pair, result).run()
    assert order(result.samples) == [
        *("a first 1", "b first 1", "a second 1", "b second 1"),
        *("a first 2", "b first 2", "a second 2", "b second 2"),
    ]
    assert diary == ["open a", "open b", "close a", "close b"]


async def test_servers_that_make_room_for_each_other_take_turns_in_rounds(scripted_server: StartServer):
    diary: list[str] = []
    pair = [FakeContestant(name, scripted_server(ALWAYS), diary) for name in "ab"]
    result = empty(*pair)
    await Runner(RunPlan(prompts=[PROMPT], runs=3, rounds=2), pair, result).run()
    assert order(result.samples) == [
        *("a first 1", "a first 2", "b first 1", "b first 2", "a first 3", "b first 3"),
    ]
    assert diary[:8] == ["open a", "close a", "open b", "close b"] * 2


async def test_each_start_is_warmed_up_by_a_short_request_that_does_not_count(scripted_server: StartServer):
    server = scripted_server(ALWAYS)
    contestant = FakeContestant("a", server, [])
    result = empty(contestant)
    await Runner(RunPlan(prompts=[PROMPT], runs=1), [contestant], result).run()
    assert [chat.body["max_tokens"] for chat in server.chats] == [WARM_UP_TOKENS, 1200]
    assert len(result.samples) == 1


async def test_the_same_run_has_the_same_seed_on_every_server(scripted_server: StartServer):
    servers = [scripted_server(ALWAYS), scripted_server(ALWAYS)]
    pair = [FakeContestant(name, server, []) for name, server in zip("ab", servers, strict=True)]
    await Runner(RunPlan(prompts=[PROMPT], runs=2, together=True, seed=7), pair, empty(*pair)).run()
    for server in servers:
        assert [chat.body["seed"] for chat in server.chats[1:]] == [7, 8]


async def test_server_that_does_not_start_leaves_the_results_of_the_other(scripted_server: StartServer):
    error = ModelFileError("the file is missing", "pull it")
    bad = FakeContestant("bad", scripted_server(ALWAYS), [], start_error=error)
    good = FakeContestant("good", scripted_server(ALWAYS), [])
    result = empty(bad, good)
    await Runner(RunPlan(prompts=[PROMPT], runs=2), [bad, good], result).run()
    assert order(result.samples) == ["good first 1", "good first 2"]
    assert "the file is missing" in bad.report.failure
    assert bad.report.failure_code == 6


async def test_one_failed_request_does_not_end_the_runs(scripted_server: StartServer):
    server = scripted_server("warm", {"fault": "http_500"}, ALWAYS)
    contestant = FakeContestant("a", server, [])
    result = empty(contestant)
    await Runner(RunPlan(prompts=[PROMPT], runs=3), [contestant], result).run()
    assert [bool(sample.measurement) for sample in result.samples] == [False, True, True]
    assert not contestant.report.failure


async def test_two_failed_requests_in_a_row_do(scripted_server: StartServer):
    server = scripted_server("warm", {"fault": "http_500", "times": 0})
    contestant = FakeContestant("a", server, [])
    result = empty(contestant)
    await Runner(RunPlan(prompts=[PROMPT], runs=5), [contestant], result).run()
    assert len(result.samples) == 2
    assert "HTTP 500" in contestant.report.failure


async def test_server_that_is_gone_takes_no_further_part_and_says_why(scripted_server: StartServer):
    def ended() -> AgentError:
        return ServerError("out of memory")

    server = scripted_server("warm", {"fault": "drop", "text": "a b c d"}, ALWAYS)
    contestant = FakeContestant("a", server, [], ended=ended)
    result = empty(contestant)
    await Runner(RunPlan(prompts=[PROMPT], runs=3), [contestant], result).run()
    assert contestant.report.failure == "out of memory"
    assert len(result.samples) == 1


async def test_what_was_measured_stays_when_the_runs_are_cancelled(scripted_server: StartServer):
    diary: list[str] = []
    server = scripted_server("warm", "yes", {"fault": "silence"})
    contestant = FakeContestant("a", server, diary)
    result = empty(contestant)
    work = asyncio.ensure_future(Runner(RunPlan(prompts=[PROMPT], runs=3), [contestant], result).run())
    await asyncio.to_thread(server.wait_for_chats, 3)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert order(result.samples) == ["a first 1"]
    assert diary == ["open a", "close a"]


async def test_raw_replies_are_handed_over_as_they_come(scripted_server: StartServer):
    kept: list[Sample] = []

    def keep(sample: Sample) -> Sample:
        kept.append(sample)
        return sample

    contestant = FakeContestant("a", scripted_server(ALWAYS), [])
    await Runner(RunPlan(prompts=[PROMPT], runs=2), [contestant], empty(contestant), keep=keep).run()
    assert [sample.run for sample in kept] == [1, 2]


async def test_progress_counts_all_requests(scripted_server: StartServer):
    steps: list[Step] = []
    contestant = FakeContestant("a", scripted_server(ALWAYS), [])
    plan = RunPlan(prompts=[PROMPT, OTHER_PROMPT], runs=2)
    await Runner(plan, [contestant], empty(contestant), watch=steps.append).run()
    assert (steps[-1].done, steps[-1].total, steps[-1].what) == (3, 4, "second, run 2 of 2")
