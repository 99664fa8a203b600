"""The interface inside of tmux, which is a terminal of its own kind between the program and the person's."""

import contextlib
import shutil
from collections.abc import Callable, Iterator

import pytest

from tests.conftest import StartServer
from tests.e2e.conftest import Place
from tests.e2e.terminal.conftest import Force, recorded
from tests.e2e.terminal.tmux import Tmux

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]


OpenTmux = Callable[[], Tmux]
PATIENCE = 150.0
"""For what a real model does, in seconds."""


@pytest.fixture
def open_tmux(place: Place) -> Iterator[OpenTmux]:
    with contextlib.ExitStack() as opened:

        def begin() -> Tmux:
            tmux = Tmux(place)
            opened.callback(tmux.ask, "kill-server")
            return tmux

        yield begin


def test_typing_alt_enter_a_resize_and_leaving_work_in_tmux(
    place: Place, scripted_server: StartServer, open_tmux: OpenTmux
):
    place.use(scripted_server("Said in tmux 合計 🙂.", "Said after it.").url)
    tmux = open_tmux()
    tmux.until(lambda shown: "● ready" in shown)
    tmux.press("-l", "Speak")
    tmux.press("Enter")
    tmux.until(lambda shown: "Said in tmux 合計 🙂." in shown and "tok/s" in shown)
    tmux.press("-l", "And again")
    tmux.press("M-Enter")
    tmux.until(lambda shown: "Said after it." in shown)
    tmux.ask("resize-window", "-x", "60", "-y", "20")
    tmux.until(lambda shown: "Said after it." in shown and shown.splitlines()[-1].strip().startswith("ask"))
    tmux.press("C-d")
    tmux.until(lambda shown: "ended with 0" in shown and "agent --resume" in shown)


@pytest.mark.real
@pytest.mark.timeout(400)
def test_a_session_with_the_real_server_works_in_tmux_from_its_first_task_to_the_next_start(
    place: Place, force: Force, open_tmux: OpenTmux
):
    one, two = (("shell", {"command": f"mkdir {name}"}) for name in ("one", "two"))
    first, long, second = (("finish", {"answer": text}) for text in ("All done.", "On and on.", "And again."))
    server = force(one, two, first, long, second)
    tmux = open_tmux()
    tmux.until(lambda shown: "● ready" in shown)
    tmux.say("Make both")
    tmux.until(lambda shown: "1 yes" in shown and "mkdir one" in shown, PATIENCE)
    tmux.answer("1", lambda _: (place.workspace / "one").is_dir())
    tmux.until(lambda shown: "1 yes" in shown and "mkdir two" in shown, PATIENCE)
    tmux.answer("4", lambda shown: "Enter denies" in shown)
    tmux.say("one will do")
    tmux.until(lambda shown: "All done." in shown, PATIENCE)
    assert not (place.workspace / "two").exists()
    assert "one will do" in server.told(2)[-1]

    server.proxy.hold(8)
    tmux.say("Go on")
    tmux.until(lambda _: server.proxy.is_held.is_set(), PATIENCE)
    tmux.say("Mind the step")
    tmux.ask("resize-window", "-x", "60", "-y", "20")
    tmux.until(lambda shown: shown.splitlines()[-1].strip().startswith("ask") and "Mind the step" in shown)
    tmux.press("Escape")
    tmux.until(lambda shown: "interrupted" in shown and "█ Mind the step" in shown)
    server.proxy.let_go()
    tmux.until(lambda _: server.is_idle and server.proxy.left == [3])
    tmux.press("C-c")
    tmux.until(lambda shown: "Ask for something" in shown)
    tmux.press("C-d")
    tmux.until(lambda shown: "ended with 0" in shown and "agent --resume" in shown)

    tmux.start_again("--continue")
    tmux.until(lambda shown: "All done." in shown and "● ready" in shown)
    tmux.say("Once more")
    tmux.until(lambda shown: "And again." in shown, PATIENCE)
    assert server.messages(4)[: len(server.messages(2))] == server.messages(2)
    ends = ["done", "cancelled", "done"]
    tmux.until(lambda _: [event["reason"] for event in recorded(place, "turn_finished")] == ends)
