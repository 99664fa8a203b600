import pytest

from agent.permissions.context import Mode
from agent.permissions.rules import parse_rules
from tests.permissions.case_files import MODES, OWN_MEANS, attacks, verdict_cases
from tests.permissions.conftest import Decide

ALL_COMMANDS = [command for command, _ in verdict_cases()] + attacks()


@pytest.mark.parametrize(("command", "expected"), verdict_cases(), ids=lambda case: str(case)[:60])
def test_a_command_gets_the_verdict_of_its_mode(
    judge: Decide, command: str, expected: dict[Mode, str]
) -> None:
    given = {mode: judge("shell", command=command, mode=mode).verdict for mode in expected}
    assert given == expected


@pytest.mark.parametrize("command", attacks(), ids=lambda command: repr(command)[:60])
def test_an_attack_is_never_allowed_without_a_person(judge: Decide, command: str) -> None:
    modes: tuple[Mode, ...] = ("ask", "accept-edits", "plan")
    for mode in modes:
        assert judge("shell", command=command, mode=mode).verdict != "allow", mode
        assert judge("shell", command=command, mode=mode, headless=True).verdict == "deny", mode


def test_there_are_many_attacks() -> None:
    assert len(set(attacks())) >= 500


@pytest.mark.parametrize("mode", MODES)
def test_the_suggested_rule_would_allow_the_command(judge: Decide, mode: Mode) -> None:
    suggested = 0
    for command in ALL_COMMANDS:
        suggestion = judge("shell", command=command, mode=mode).suggested_rule
        if suggestion is None:
            continue
        suggested += 1
        rules = parse_rules(allow=[suggestion], source="test")
        assert judge("shell", command=command, mode=mode, rules=rules).verdict == "allow", (
            command,
            suggestion,
        )
    assert suggested > 50


@pytest.mark.parametrize("mode", MODES)
def test_a_deny_rule_for_rm_also_holds_inside_chains_and_wrappers(judge: Decide, mode: Mode) -> None:
    rules = parse_rules(allow=["*"], deny=["shell(rm *)"], source="test")
    attempts = [
        command for command in attacks() if "rm -rf build" in command and not command.startswith(OWN_MEANS)
    ]
    assert len(attempts) > 150
    for command in attempts:
        assert judge("shell", command=command, mode=mode, rules=rules).verdict != "allow", command
