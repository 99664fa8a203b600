"""What is missing at first, in line mode."""

import asyncio
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.core.errors import UsageError
from agent.ui.options import Headway, Missing, Opening, Progress, UiOptions
from agent.ui.plain import run_plain
from agent.ui.plain_setup import PlainSetup
from tests.fakes.fake_handle import FakeHandle
from tests.ui.test_setup import ENGINE, NO_GPU, FakeSetup

MODEL = Missing(
    what="Model file small.gguf",
    remedy="from here into /models; the same as",
    command="agent model pull small",
    download_bytes=98_362_432,
    can_fetch=True,
)
LINE = "- Model file small.gguf (98.4 MB): from here into /models; the same as `agent model pull small`\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


async def run(
    setup: FakeSetup, source: io.StringIO, handle: FakeHandle | None = None, **options: Any
) -> tuple[str, list[Opening]]:
    openings: list[Opening] = []

    async def open_session(opening: Opening) -> FakeHandle:
        openings.append(opening)
        return handle or FakeHandle()

    output = io.StringIO()
    asked = UiOptions(workspace=Path("/home/me"), open_session=open_session, setup=setup, **options)
    assert await run_plain(asked, source, output) == 0
    return output.getvalue(), openings


async def test_what_is_missing_is_a_line_with_its_command_and_is_got_after_a_yes():
    setup = FakeSetup(MODEL, NO_GPU)
    text, openings = await run(setup, Terminal("y\n/quit\n"))
    assert LINE in text
    assert "- No GPU was found: the model runs on the CPU\n" in text
    assert "y gets it (98.4 MB), n goes on without\n" in text
    assert (setup.fetched, len(openings)) == ([""], 1)


async def test_a_no_opens_the_session_without_it():
    setup = FakeSetup(MODEL)
    _, openings = await run(setup, Terminal("n\n/quit\n"))
    assert (setup.begun, len(openings)) == (0, 1)


async def test_any_other_line_is_no_answer():
    setup = FakeSetup(MODEL)
    text, _ = await run(setup, Terminal("\nfix the bug\nn\n/quit\n"))
    assert setup.begun == 0
    assert text.count("y gets it") == 3


async def test_where_nobody_can_be_asked_it_is_said_and_nothing_is_fetched():
    setup = FakeSetup(MODEL)
    text, openings = await run(setup, io.StringIO("/quit\n"))
    assert LINE in text
    assert "y gets it" not in text
    assert (setup.begun, len(openings)) == (0, 1)


async def test_what_only_a_person_can_do_is_looked_for_again_at_enter():
    text, _ = await run(FakeSetup(ENGINE), Terminal("\nn\n/quit\n"))
    line = "- The embedded engine is not installed: uv installed this program; type this: `uv tool install"
    assert text.count(line) == 2
    assert "Enter looks again, n goes on without" in text


async def test_what_fails_is_said_and_offered_again():
    setup = FakeSetup(MODEL, failures=1)
    text, _ = await run(setup, Terminal("y\ny\n/quit\n"))
    assert "no connection\ntry again\n" in text
    assert (setup.begun, setup.fetched) == (2, [""])


async def test_the_end_of_the_input_while_it_is_offered_ends_the_session():
    handle = FakeHandle()
    await run(FakeSetup(MODEL), Terminal(""), handle)
    assert handle.is_closed


async def test_stopping_keeps_what_is_there_and_offers_it_again():
    setup, said, is_half = FakeSetup(MODEL, slow=True), list[str](), asyncio.Event()

    def say(line: str) -> None:
        said.append(line)
        if "50 %" in line:
            is_half.set()

    answers = iter(["y", "n"])

    async def ask() -> str:
        return next(answers)

    plain = PlainSetup(setup, say, ask, lambda: 0.0)
    assert not plain.stop()
    work = asyncio.create_task(plain.run(Opening()))
    await asyncio.wait_for(is_half.wait(), 30)
    assert plain.stop()
    assert not await work
    assert (setup.begun, setup.stopped) == (1, 1)
    assert "Stopped; what is there is kept." in said


async def test_a_download_is_a_line_for_each_tenth_of_it():
    class Fetching(FakeSetup):
        async def fetch(self, opening: Opening, progress: Progress) -> None:
            for done in range(0, 101, 5):
                progress(Headway(name="small.gguf", done=done * 1000, whole=100_000))
            for number in range(100):
                progress(Headway(name=f"compile {number}", is_bytes=False))
            await asyncio.sleep(0)
            self.items = []

    said: list[str] = []

    async def ask() -> str:
        return "y"

    assert await PlainSetup(Fetching(MODEL), said.append, ask, lambda: 0.0).run(Opening())
    assert sum("small.gguf " in line and "%" in line for line in said) == 11
    assert not any("compile" in line for line in said)


async def test_a_session_that_is_not_there_leaves_the_open_one_open():
    async def resumable(_arguments: Mapping[str, Any]) -> str:
        raise UsageError("no session 'x'", "did you mean 20260101-abc?")

    text, openings = await run(FakeSetup(), Terminal("/resume x\n/quit\n"), services={"resumable": resumable})
    assert "did you mean 20260101-abc?" in text
    assert len(openings) == 1
