"""Starting over from the first message where a check can tell that an attempt failed."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import pytest

from agent.core.attempts import run_attempts
from agent.core.cancel import closing
from agent.core.events import Event, Notice, TextDelta, TurnFinished, TurnStarted
from agent.core.limits import AttemptLimit, Guard, StepLimit, TokenLimit
from agent.core.model import ModelItem
from agent.core.stats import StepStats
from agent.core.turn import TurnServices
from tests.core.rig import FakeCheck, FakeTool, editing, of_type, services_of, types
from tests.fakes.scripted_model import ScriptedModel, act, bad, broken, call

GuardsOf = Callable[[StepStats, int], Sequence[Guard]]


class FakeAttempts:
    def __init__(
        self, model: ScriptedModel, count: int, check: FakeCheck | None = None, guards: GuardsOf | None = None
    ) -> None:
        self.count = count
        self.cancel = asyncio.Event()
        self.restored = 0
        self.spent: list[tuple[int, int]] = []
        self._model = model
        self._check = check
        self._guards = guards or (lambda spent, steps: ())

    def services(self, attempt: int, spent: StepStats, steps: int) -> TurnServices:
        self.spent.append((steps, spent.decoded_tokens))
        guards = self._guards(spent, steps)
        tools = (FakeTool("read"), editing())
        return services_of(self._model, *tools, guards=guards, verifier=self._check, cancel=self.cancel)

    def restore(self) -> Sequence[str]:
        self.restored += 1
        return ["a.py", "b.py"]


async def run(attempts: FakeAttempts) -> list[Event]:
    return [event async for event in run_attempts("Be brief.", "Mend it.", attempts)]


def the_end(events: list[Event]) -> TurnFinished:
    [end] = of_type(events, TurnFinished)
    assert events[-1] is end
    return end


async def test_one_attempt_that_succeeds_is_all():
    attempts = FakeAttempts(ScriptedModel("Done."), 3, FakeCheck(True))

    events = await run(attempts)

    assert types(events)[:2] == ["turn_started", "user_message"]
    assert the_end(events).reason == "done"
    assert attempts.restored == 0


async def test_a_failed_attempt_is_undone_and_starts_over_from_the_same_first_messages():
    model = ScriptedModel(act(call("edit")), "A.", "B.", "C.", "D.")
    attempts = FakeAttempts(model, 2, FakeCheck(False, False, False, False, True))

    events = await run(attempts)

    assert attempts.restored == 1
    assert [event.attempt for event in of_type(events, TurnStarted)] == [1, 2]
    assert model.requests[4] == model.requests[0]
    assert model.requests[0] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Mend it."},
    ]
    assert the_end(events).reason == "done"


async def test_the_restart_is_told_as_a_notice_and_a_broken_prefix():
    events = await run(FakeAttempts(ScriptedModel("Done."), 2, FakeCheck(False, False, False, True)))

    restart = types(events).index("turn_started", 1)
    assert types(events)[restart - 2 : restart] == ["notice", "prefix_broken"]
    [notice] = of_type(events, Notice)
    assert notice.text == (
        "attempt 1 ended: the check still fails after 3 tries: make test, "
        "2 changed files restored; starting over"
    )


async def test_the_one_end_sums_up_all_attempts():
    attempts = FakeAttempts(ScriptedModel("Done."), 3, FakeCheck(False))

    end = the_end(await run(attempts))

    assert (end.reason, end.steps) == ("check_failed", 9)
    assert end.stats.decoded_tokens == 9 * 5
    assert attempts.spent == [(0, 0), (3, 15), (6, 30)]


async def test_what_the_last_attempt_changed_stays():
    attempts = FakeAttempts(ScriptedModel("Done."), 2, FakeCheck(False))
    await run(attempts)
    assert attempts.restored == 1


async def test_a_model_that_gave_up_gets_another_attempt():
    attempts = FakeAttempts(ScriptedModel(bad("a"), bad("b"), bad("c"), "Done."), 2, FakeCheck(True))
    assert the_end(await run(attempts)).reason == "done"


async def test_an_attempt_that_took_too_many_steps_is_followed_by_another():
    script = [act(call("read", path=str(number))) for number in range(3)]
    attempts = FakeAttempts(
        ScriptedModel(*script, "Done."),
        2,
        FakeCheck(True),
        lambda _, steps: [AttemptLimit(3)] if not steps else [],
    )
    end = the_end(await run(attempts))
    assert (end.reason, end.steps) == ("done", 4)


async def test_limits_of_the_run_hold_over_all_attempts():
    attempts = FakeAttempts(
        ScriptedModel("Done."), 9, FakeCheck(False), lambda spent, steps: [StepLimit(5, steps)]
    )
    end = the_end(await run(attempts))
    assert (end.reason, end.steps) == ("step_limit", 5)

    attempts = FakeAttempts(
        ScriptedModel("Done."),
        9,
        FakeCheck(False),
        lambda spent, steps: [TokenLimit(20, spent.decoded_tokens)],
    )
    end = the_end(await run(attempts))
    assert (end.reason, end.steps) == ("token_limit", 4)


@pytest.mark.parametrize(("stop", "reason"), [("error", "server_failed"), ("cancelled", "cancelled")])
async def test_what_is_no_fault_of_the_model_is_not_tried_again(stop: str, reason: str):
    attempts = FakeAttempts(ScriptedModel(broken(stop)), 3, FakeCheck(True))

    end = the_end(await run(attempts))

    assert (end.reason, end.steps) == (reason, 1)
    assert attempts.restored == 0


async def test_a_cancel_between_attempts_ends_the_run():
    attempts = FakeAttempts(ScriptedModel("Done."), 3, FakeCheck(False))
    attempts.cancel.set()
    assert the_end(await run(attempts)).reason == "cancelled"


async def test_a_reader_who_leaves_closes_the_models_stream():
    async def for_ever() -> AsyncIterator[ModelItem]:
        yield TextDelta(text="I")
        await asyncio.Event().wait()

    model = ScriptedModel(for_ever)
    async with closing(run_attempts("Be brief.", "Mend it.", FakeAttempts(model, 1))) as events:
        async for event in events:
            if event.type == "text_delta":
                break
    assert model.streams_closed == 1


async def test_a_check_that_fails_in_every_attempt_is_a_failed_check_and_no_limit():
    script = [act(call("read", path=str(number))) for number in range(2)]
    attempts = FakeAttempts(ScriptedModel(*script), 2, FakeCheck(False), lambda *_: [AttemptLimit(1)])
    end = the_end(await run(attempts))
    assert (end.reason, end.detail) == ("check_failed", "the check still fails after 2 attempts")
