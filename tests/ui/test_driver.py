"""A terminal that goes away, and faults that nobody may miss."""

import io
from pathlib import Path

from agent.ui.app import AgentApp
from agent.ui.driver import LastingDriver, UntilItIsGone
from agent.ui.options import UiOptions
from tests.ui.rig import Rig


class Gone(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(5, "Input/output error")

    def flush(self) -> None:
        raise OSError(5, "Input/output error")


def test_what_a_terminal_that_is_gone_does_not_take_is_dropped():
    terminal = UntilItIsGone(Gone())
    assert terminal.write("text") == 4
    terminal.flush()


def test_a_terminal_gets_what_it_takes():
    file = io.StringIO()
    UntilItIsGone(file).write("text")
    assert file.getvalue() == "text"


def test_the_application_uses_it(tmp_path: Path):
    async def never(_):
        raise AssertionError

    assert AgentApp(UiOptions(workspace=tmp_path, open_session=never)).driver_class is LastingDriver


async def test_a_fault_while_the_session_opens_is_told_in_one_line():
    rig = Rig()

    async def broken(_):
        raise KeyError("oops")

    rig.app.options = UiOptions(workspace=rig.app.options.workspace, open_session=broken)
    async with rig.app.run_test() as pilot:
        for _ in range(100):
            await pilot.pause()
            if rig.lines:
                break
        assert rig.lines == ["that did not work: KeyError: 'oops'"]
        assert rig.app.desk is not None
        assert rig.app.desk.live.has_failed
