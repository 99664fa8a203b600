"""Terminals that are closed at the end of a test, whatever happened in them."""

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agent.server.record import Record, list_records
from benchmarks.forcing_proxy import Call, ForcingProxy
from tests.e2e.conftest import Place
from tests.e2e.terminal.forced import Forced
from tests.e2e.terminal.rig import Terminal
from tests.fakes.state import RecordedRequest
from tests.real.rig import serving

OpenTerminal = Callable[..., Terminal]
Force = Callable[..., Forced]

_TALKING = """
engine = "remote"
url = "{url}"
context = 4096
[tools]
protocol = "native"
"""


@pytest.fixture
def terminal(place: Place) -> Iterator[OpenTerminal]:
    """Opens terminals: `terminal("--continue", size=(80, 24))`."""
    opened: list[Terminal] = []

    def open_one(*arguments: str, **options: Any) -> Terminal:
        opened.append(Terminal(place, *arguments, **options))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


def said(request: RecordedRequest, role: str = "user") -> list[str]:
    """The texts of that role in a chat request, oldest first."""
    return [str(message["content"]) for message in request.body["messages"] if message["role"] == role]


def recorded(place: Place, kind: str) -> list[dict[str, Any]]:
    """The events of that type in all sessions so far, whose last lines may be half written."""
    found: list[dict[str, Any]] = []
    for file in sorted(place.state.glob("sessions/*/*/events.jsonl")):
        whole = file.read_text("utf-8").rpartition("\n")[0]
        found += [event for event in map(json.loads, whole.splitlines()) if event["type"] == kind]
    return found


@pytest.fixture(scope="module")
def real_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Record]:
    """The embedded server with the smallest model and one thread."""
    folder = tmp_path_factory.mktemp("server")
    with serving("embedded-small", folder):
        [record] = list_records(folder / "run")
        yield record


@pytest.fixture
def force(place: Place, real_server: Record) -> Iterator[Force]:
    """Has the real model make its replies as they are given: `force(("shell", {"command": "ls"}), "Done.")`.

    Calls are made as the profile says; a model that `talks` calls nothing and writes plain texts.
    """
    with contextlib.ExitStack() as opened:

        def begin(*steps: Call | str, talks: bool = False) -> Forced:
            proxy = ForcingProxy(real_server.port, real_server.api_key, steps)
            place.use(opened.enter_context(proxy).url)
            place.profile("talking", _TALKING.format(url=proxy.url))
            place.variables["AGENT_PROFILE"] = "talking" if talks else "embedded-small"
            return Forced(proxy, real_server)

        yield begin
