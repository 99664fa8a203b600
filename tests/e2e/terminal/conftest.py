"""Terminals that are closed at the end of a test, whatever happened in them."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.e2e.conftest import Place
from tests.e2e.terminal.rig import Terminal
from tests.fakes.state import RecordedRequest

OpenTerminal = Callable[..., Terminal]


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
