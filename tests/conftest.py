"""Fixtures that every room's tests may use."""

import gc
import signal
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest

from tests.fakes.engines import EngineServer, Habits, Kind
from tests.fakes.script import StepLike
from tests.fakes.scripted_server import ScriptedServer
from tests.fakes.state import ServerSettings

StartServer = Callable[..., ScriptedServer]
StartEngine = Callable[..., EngineServer]


def pytest_configure() -> None:
    """Lets commands be interrupted also where the suite was started in the background.

    Shells and `nohup` start such programs with these signals ignored, and their children inherit that.
    """
    for number, usual in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGQUIT, signal.SIG_DFL),
        (signal.SIGHUP, signal.SIG_DFL),
    ):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, usual)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Quick tests first, those with a real model last: a slip shows before the long wait.

    Of those with a real model the slow ones come first, so that no process is left with one at the end.
    """

    def place(item: pytest.Item) -> tuple[bool, bool]:
        is_real, is_slow = "real" in item.keywords, "slow" in item.keywords
        return is_real, is_slow is not is_real

    items.sort(key=place)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keeps the garbage collector away from what stays to the end: modules, and thousands of tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.fixture
def scripted_server() -> Iterator[StartServer]:
    """Starts servers that answer from a script: `scripted_server("Hello", {"fault": "drop"}, api_key="k")`.

    Positional arguments are steps, see `tests.fakes.script`; named ones are `ServerSettings`.
    """
    servers: list[ScriptedServer] = []

    def start(*steps: StepLike | Callable[[Any], StepLike], **settings: Any) -> ScriptedServer:
        servers.append(ScriptedServer(steps, ServerSettings(**settings)))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def other_engine() -> Iterator[StartEngine]:
    """Starts servers that are no llama-server: `other_engine("vllm", "Hello", drafts_of=7)`.

    Behind the kind come the steps; named arguments are those of `tests.fakes.engines.Habits`.
    """
    servers: list[EngineServer] = []

    def start(kind: Kind, *steps: StepLike, **habits: Any) -> EngineServer:
        servers.append(EngineServer(Habits(kind=kind, **habits), *steps))
        return servers[-1]

    yield start
    for server in servers:
        server.close()
