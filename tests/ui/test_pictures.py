"""Every screen at three sizes, as it was looked at and found good."""

from pathlib import Path

import pytest
from textual.pilot import Pilot

from agent.core.events import (
    AssistantReplied,
    QueueChanged,
    StepFinished,
    StepStarted,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    UserMessageAdded,
)
from agent.core.stats import StepStats
from agent.core.tool import FileDiff
from agent.ui.screens.page import PageScreen
from agent.ui.screens.picker import PickerScreen
from agent.ui.screens.question import QuestionScreen
from agent.ui.widgets.menu import Choice
from tests.ui.pictures import compare
from tests.ui.rig import SIZES, RealRig, rest, settle, type_text
from tests.ui.test_approvals import EDIT, PYTEST
from tests.ui.test_questions import FORM
from tests.ui.test_setup import ENGINE, MODEL, NO_GPU, FakeSetup, says, shown

at_every_size = pytest.mark.parametrize("size", SIZES, ids=[f"{wide}x{high}" for wide, high in SIZES])
STATS = StepStats(
    prompt_tokens=340, cached_tokens=12_000, decoded_tokens=260, prompt_seconds=0.2, decode_seconds=2.0,
    drafted=300, accepted=204,
)  # fmt: skip
REPLY = """Two things were wrong. `total` began at **one**, and the loop left out the last price:

```python
def total(prices: list[float]) -> float:
    return sum(prices)  # 合計 🙂
```

| file | change |
|---|---|
| cart.py | a shorter function |

- a line that is so long that it has to go on in the next row when the terminal is as narrow as most are
"""
CHANGE = FileDiff(
    "cart.py", "def total(prices):\n    return 1\n", "def total(prices):\n    return sum(prices)\n"
)


async def a_turn(pilot: Pilot[str], rig: RealRig) -> None:
    """A turn with a reading, an edit, a command whose output has control characters, and a reply."""
    await settle(pilot, rig)
    rig.handle.emit(TurnStarted(attempt=1), UserMessageAdded(text="The sum is wrong. Mend it"))
    rig.handle.emit(StepStarted(step=1))
    for number, (tool, arguments, text) in enumerate(
        [
            ("read", {"path": "cart.py"}, "1 def total(prices):\n2     return 1\n"),
            ("edit", {"path": "cart.py", "old": "1", "new": "sum(prices)"}, "edited cart.py"),
            ("shell", {"command": "pytest -q"}, "\x1b[31mred\x1b[0m\x07\n1 passed"),
        ]
    ):
        call_id = str(number)
        diffs = (CHANGE,) if tool == "edit" else ()
        rig.handle.emit(ToolStarted(call_id=call_id, tool=tool, arguments=arguments))
        rig.handle.emit(
            ToolFinished(call_id=call_id, tool=tool, outcome="ok", text=text, seconds=1.5, diffs=diffs)
        )
    rig.clock.now += 4
    rig.handle.emit(AssistantReplied(text=REPLY, reasoning=""))
    rig.handle.emit(StepFinished(step=1, stop_reason="stop", stats=STATS))
    rig.handle.emit(TurnFinished(reason="done", answer=REPLY, detail="", steps=1, stats=STATS))
    await rest(pilot)
    rig.view.flush()
    rig.app.desk.refresh() if rig.app.desk else None
    await rest(pilot)


@at_every_size
async def test_before_the_first_message(size: tuple[int, int], tmp_path: Path):
    rig = RealRig()
    async with rig.app.run_test(size=size) as pilot:
        await settle(pilot, rig)
        compare(rig.app, f"welcome-{size[0]}x{size[1]}", tmp_path)


@at_every_size
async def test_a_conversation(size: tuple[int, int], tmp_path: Path):
    rig = RealRig()
    async with rig.app.run_test(size=size) as pilot:
        await a_turn(pilot, rig)
        compare(rig.app, f"conversation-{size[0]}x{size[1]}", tmp_path)


@at_every_size
async def test_the_figures_of_the_turns(size: tuple[int, int], tmp_path: Path):
    rig = RealRig()
    async with rig.app.run_test(size=size) as pilot:
        await a_turn(pilot, rig)
        await pilot.press("f2")
        await rest(pilot)
        compare(rig.app, f"turns-{size[0]}x{size[1]}", tmp_path)


@at_every_size
@pytest.mark.parametrize("request_", [PYTEST, EDIT], ids=["command", "edit"])
async def test_a_question(size: tuple[int, int], request_, tmp_path: Path):
    rig = RealRig()
    async with rig.app.run_test(size=size) as pilot:
        await settle(pilot, rig)
        rig.handle.emit(request_)
        await rest(pilot)
        rig.app.desk.refresh() if rig.app.desk else None
        await rest(pilot)
        compare(rig.app, f"question-{request_.tool}-{size[0]}x{size[1]}", tmp_path)


@at_every_size
async def test_the_menu_of_commands(size: tuple[int, int], tmp_path: Path):
    rig = RealRig()
    async with rig.app.run_test(size=size) as pilot:
        await settle(pilot, rig)
        await type_text(pilot, "/re")
        await rest(pilot)
        compare(rig.app, f"menu-{size[0]}x{size[1]}", tmp_path)


@at_every_size
async def test_a_picker(size: tuple[int, int], tmp_path: Path):
    rig = RealRig()
    choices = [Choice(str(at), f"session {at}", f"{at} messages · 合計 🙂 " * 6) for at in range(1, 30)]
    async with rig.app.run_test(size=size) as pilot:
        await settle(pilot, rig)
        rig.app.push_screen(PickerScreen("Sessions of this project", choices))
        await rest(pilot)
        compare(rig.app, f"picker-{size[0]}x{size[1]}", tmp_path)


@at_every_size
async def test_a_plan_and_texts_that_wait(size: tuple[int, int], tmp_path: Path):
    rig = RealRig()
    async with rig.app.run_test(size=size) as pilot:
        await settle(pilot, rig)
        rig.handle.emit(AssistantReplied(text="- [x] read cart.py\n- [ ] mend total 合計\n", reasoning=""))
        rig.handle.emit(QueueChanged(steering=("only this file",), follow_ups=("then the tests " * 12,)))
        await rest(pilot)
        rig.view.flush()
        await rest(pilot)
        compare(rig.app, f"waiting-{size[0]}x{size[1]}", tmp_path)


@at_every_size
async def test_a_page_and_a_form(size: tuple[int, int], tmp_path: Path):
    rig = RealRig()
    async with rig.app.run_test(size=size) as pilot:
        await settle(pilot, rig)
        rig.app.push_screen(PageScreen("Server log", "loaded 合計 \x1b[2J\n" + "a long line " * 20))
        await rest(pilot)
        compare(rig.app, f"page-{size[0]}x{size[1]}", tmp_path)
        await pilot.press("escape")
        rig.app.push_screen(QuestionScreen(FORM))
        await rest(pilot)
        compare(rig.app, f"form-{size[0]}x{size[1]}", tmp_path)


@at_every_size
async def test_what_is_missing_at_first(size: tuple[int, int], tmp_path: Path):
    rig = RealRig(options={"setup": FakeSetup(ENGINE, MODEL, NO_GPU, slow=True)})
    async with rig.app.run_test(size=size) as pilot:
        panel = await shown(pilot, rig)
        await type_text(pilot, "Explain cart.py")
        compare(rig.app, f"setup-{size[0]}x{size[1]}", tmp_path)
        await pilot.press("ctrl+c", "enter")
        await says(pilot, "50 %", panel)
        await type_text(pilot, "Explain cart.py")
        compare(rig.app, f"setup-at-work-{size[0]}x{size[1]}", tmp_path)
