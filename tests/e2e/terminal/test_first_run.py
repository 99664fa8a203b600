"""The first start in a real terminal: what is missing, a scripted download, and the input field beside it."""

import hashlib
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conftest import StartServer
from tests.e2e.conftest import Place
from tests.e2e.terminal.conftest import OpenTerminal
from tests.e2e.terminal.rig import ENTER, ESCAPE, Terminal
from tests.fakes.fake_hub import FakeHub, running_hub
from tests.fakes.llama_binary import FakeBinary, make_llama_binary
from tests.real.tiny_pair import write_target

pytestmark = pytest.mark.timeout(180)
PROFILE = """\
engine = "llama-server"
context = 4096
threads = 1
[target]
file = "target.gguf"
sha256 = "{sha256}"
bytes = {bytes}
sources = [{{ kind = "hub", repo = "maker/model", revision = "v1" }}]
[tools]
protocol = "native"
"""


@pytest.fixture
def hub(place: Place) -> Iterator[FakeHub]:
    """Has the only model of the profile `mine`; nothing of it is on this machine."""
    content = write_target(place.folder / "elsewhere.gguf").read_bytes()
    place.profile("mine", PROFILE.format(sha256=hashlib.sha256(content).hexdigest(), bytes=len(content)))
    with running_hub(FakeHub(content)) as hub:
        place.variables |= {"AGENT_PROFILE": "mine", "HF_ENDPOINT": hub.url}
        yield hub
        hub.go_on.set()


@pytest.fixture
def binary(place: Place) -> Iterator[FakeBinary]:
    made = make_llama_binary(place.folder / "bin", any_model=True, reply="It is a teapot.")
    place.variables |= {"AGENT_SERVER_BINARY": str(made.path)}
    yield made
    for start in made.starts():
        with suppress(ProcessLookupError):
            os.kill(start["pid"], signal.SIGKILL)


def accept(screen: Terminal, words: str) -> None:
    """Presses Enter; again if the panel was so new that it did not listen yet."""

    def is_met() -> bool:
        if words not in screen.text and "Enter, with nothing typed" in screen.text:
            screen.press(ENTER)
        return words in screen.text

    screen.until(is_met)


def model_of(place: Place) -> Path:
    return place.folder / "data" / "models" / "target.gguf"


def test_a_download_is_stopped_and_gone_on_with_while_a_text_waits_for_the_model(
    place: Place, hub: FakeHub, binary: FakeBinary, terminal: OpenTerminal
):
    hub.pause_after = len(hub.content) // 2
    screen = terminal(size=(80, 24))
    screen.until("↓ Model file target.gguf")
    screen.until("from Hugging Face into")
    screen.say("What is it")
    assert not hub.requests
    accept(screen, "━")
    screen.type("Later")
    screen.press(ESCAPE)
    screen.until("Stopped; what is there is kept.")
    assert (screen.prompt, model_of(place).exists()) == ("Later", False)
    hub.go_on.set()
    screen.press("\x03")
    screen.until(lambda: screen.prompt == "")
    screen.press(ENTER)
    screen.until("It is a teapot.")
    assert model_of(place).read_bytes() == hub.content
    assert "Before the model can answer" not in screen.text
    assert int((hub.requests[-1][1] or "").removeprefix("bytes=").rstrip("-")) > 0
    screen.quit()


def test_a_missing_server_is_named_beside_an_input_field_that_can_be_used(
    place: Place, hub: FakeHub, terminal: OpenTerminal
):
    place.variables["AGENT_SERVER_BINARY"] = str(place.folder / "nothing")
    screen = terminal(size=(80, 24))
    screen.until("server.binary: there is no program")
    screen.until("Esc not now")
    screen.type("Still here")
    screen.press("\x03")
    screen.press(ESCAPE)
    screen.until(lambda: "Before the model can answer" not in screen.text)
    assert screen.quit() == 0


def test_quitting_while_it_downloads_ends_at_once_and_keeps_what_came(
    place: Place, hub: FakeHub, binary: FakeBinary, terminal: OpenTerminal
):
    hub.pause_after = len(hub.content) // 2
    screen = terminal(size=(80, 24))
    screen.until("↓ Model file target.gguf")
    accept(screen, "━")
    assert screen.quit() == 0
    assert screen.is_restored
    part = model_of(place).with_name("target.gguf.part")
    assert 0 < part.stat().st_size <= len(hub.content) // 2


def test_no_git_is_one_line_in_the_conversation_the_first_time_only(
    place: Place, scripted_server: StartServer, terminal: OpenTerminal
):
    (place.folder / "empty").mkdir()
    place.use(scripted_server().url)
    place.variables["PATH"] = str(place.folder / "empty")
    first = terminal(size=(100, 30))
    first.until("git is not installed: edits and /undo work without")
    first.until_ready()
    first.quit()
    second = terminal(size=(100, 30))
    second.until_ready()
    second.say("/help")
    assert "git is not installed" not in second.text
