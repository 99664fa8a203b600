"""The plan of a session: the checklist that the model wrote last, with what it ticked off since."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+\[(?P<mark>[ xX])\]\s+(?P<text>\S.*)$")
_FENCE = re.compile(r"^\s*(```|~~~)")
LEAST_STEPS = 2


@dataclass(frozen=True, slots=True)
class PlanStep:
    text: str
    is_done: bool


Plan = Sequence[PlanStep]


def checklist_in(text: str) -> list[PlanStep]:
    """The last checklist of Markdown text, outside of code; empty where none has two steps or more."""
    found: list[PlanStep] = []
    steps: list[PlanStep] = []
    in_code = False
    for line in text.splitlines():
        if _FENCE.match(line):
            in_code = not in_code
        match = None if in_code else _ITEM.match(line)
        if match:
            steps.append(PlanStep(match["text"].strip(), match["mark"] != " "))
        elif steps and line.strip() and not line.startswith((" ", "\t")):
            found, steps = (steps if len(steps) >= LEAST_STEPS else found), []
    return steps if len(steps) >= LEAST_STEPS else found


def updated(plan: Plan, text: str) -> Plan:
    """The plan after a reply: steps that it names again are as it says, other steps are a new plan."""
    said = checklist_in(text) or _single_steps(text)
    if not said:
        return plan
    states = {_key(step): step.is_done for step in said}
    known = {_key(step) for step in plan}
    if known.isdisjoint(states):
        return said if len(said) >= LEAST_STEPS else plan
    if known <= states.keys():
        return said
    kept = [replace(step, is_done=states.get(_key(step), step.is_done)) for step in plan]
    return [*kept, *(step for step in said if _key(step) not in known)]


def _single_steps(text: str) -> list[PlanStep]:
    """One step alone is no plan, but may tick off one."""
    matches = (_ITEM.match(line) for line in text.splitlines())
    return [PlanStep(match["text"].strip(), match["mark"] != " ") for match in matches if match]


def _key(step: PlanStep) -> str:
    return re.sub(r"\W+", " ", step.text).strip().lower()


def done_count(plan: Plan) -> int:
    return sum(step.is_done for step in plan)


def next_step(plan: Plan) -> str:
    """The first step that is not done, empty when all are."""
    return next((step.text for step in plan if not step.is_done), "")


def as_text(plan: Plan) -> str:
    return "\n".join(f"{'☑' if step.is_done else '☐'} {step.text}" for step in plan)
