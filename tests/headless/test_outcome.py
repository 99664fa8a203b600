"""The exit code tells how it went, and never calls refused or unproven work done."""

from typing import get_args

import pytest

from agent.core.errors import ExitCode
from agent.core.events import CheckFinished, Event, ToolFinished, ToolOutcome, TurnFinished, TurnReason
from agent.core.stats import StepStats
from agent.headless.outcome import RunOutcome


def end(reason: TurnReason) -> TurnFinished:
    return TurnFinished(reason=reason, answer="", detail="", steps=1, stats=StepStats())


def check(*, passed: bool) -> CheckFinished:
    return CheckFinished(command="make", passed=passed, text="", seconds=0.1)


def tool(outcome: ToolOutcome) -> ToolFinished:
    return ToolFinished(
        call_id="c1",
        tool="shell",
        outcome=outcome,
        text="",
        seconds=0.1,
        decision="it changes rights",
    )


def outcome_of(*events: Event) -> RunOutcome:
    outcome = RunOutcome()
    for event in events:
        outcome.observe(event)
    return outcome


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("done", 0),
        ("check_failed", 1),
        ("gave_up", 1),
        ("attempt_limit", 3),
        ("step_limit", 3),
        ("tool_call_limit", 3),
        ("time_limit", 3),
        ("token_limit", 3),
        ("context_full", 3),
        ("server_failed", 5),
        ("cancelled", 130),
    ],
)
def test_each_way_to_end_has_its_code(reason: TurnReason, code: int):
    assert outcome_of(end(reason)).exit_code == code


def test_no_way_to_end_is_forgotten():
    assert all(isinstance(outcome_of(end(reason)).exit_code, ExitCode) for reason in get_args(TurnReason))


def test_a_run_that_never_ended_was_failed_by_the_server():
    assert outcome_of().exit_code == ExitCode.SERVER


@pytest.mark.parametrize("reason", ["done", "gave_up"])
def test_refused_work_that_nothing_proves_is_denied(reason: TurnReason):
    outcome = outcome_of(tool("denied"), end(reason))
    assert outcome.exit_code == ExitCode.DENIED
    assert outcome.denied == ["it changes rights"]


def test_a_passing_check_proves_the_work_in_spite_of_a_denial():
    assert outcome_of(tool("denied"), check(passed=True), end("done")).exit_code == ExitCode.DONE


def test_a_failing_check_after_a_denial_is_denied():
    assert outcome_of(tool("denied"), check(passed=False), end("check_failed")).exit_code == ExitCode.DENIED


def test_the_last_check_counts():
    events = (check(passed=True), tool("denied"), check(passed=False), end("done"))
    assert outcome_of(*events).exit_code == ExitCode.DENIED


@pytest.mark.parametrize("reason", ["step_limit", "server_failed", "cancelled"])
def test_what_ended_the_run_from_outside_comes_before_a_denial(reason: TurnReason):
    assert outcome_of(tool("denied"), end(reason)).exit_code == outcome_of(end(reason)).exit_code


@pytest.mark.parametrize("outcome", ["ok", "error", "cancelled"])
def test_only_a_denial_is_a_denial(outcome: ToolOutcome):
    assert outcome_of(tool(outcome), end("done")).exit_code == ExitCode.DONE
