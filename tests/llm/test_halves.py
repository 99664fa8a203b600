"""A character that a server cuts in two is whole again in the reply, and in every later request."""

from pathlib import Path
from typing import Any

import pytest

from agent.llm.halves import joined
from agent.llm.toolcalls import CallPieces
from tests.app.talk import extends, messages_of, talking
from tests.conftest import StartServer
from tests.fakes.script import Step

FIRST, SECOND = "\ud83d", "\ude00"
END = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def piece(**delta: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["a", "b"], "ab"),
        (["Hi " + FIRST, SECOND + "!"], "Hi 😀!"),
        ([FIRST, "-", SECOND], f"{FIRST}-{SECOND}"),
        (["😀" + FIRST], "😀" + FIRST),
    ],
)
def test_halves_side_by_side_are_one_character(pieces: list[str], text: str):
    assert joined(pieces) == text


def test_arguments_with_a_character_in_two_pieces_are_no_bad_call():
    call = CallPieces("c", "read", ['{"path": "' + FIRST, SECOND + '.txt"}']).complete("x")
    assert call.arguments == {"path": "😀.txt"}


async def test_a_reply_with_a_character_in_two_pieces_goes_back_the_same_after_a_session_is_resumed(
    scripted_server: StartServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for kind in ("config", "state", "data"):
        monkeypatch.setenv(f"AGENT_{kind.upper()}_HOME", str(tmp_path / kind))
    work = tmp_path / "work"
    work.mkdir()
    halves = (piece(reasoning_content=FIRST), piece(reasoning_content=SECOND), piece(content=f"Hi {FIRST}"))
    reply = Step(chunks=(*halves, piece(content=SECOND), END, "data: [DONE]\n\n"))
    server = scripted_server(reply, "Again.", "Bye.")
    async with talking(work, server) as talk:
        assert (await talk.turn("Hello")).answer == "Hi 😀"
        await talk.turn("Again")
    async with talking(work, server, resume="last") as talk:
        await talk.turn("Bye")
    requests = messages_of(server)
    assert requests[1][2]["reasoning_content"] == "😀"
    assert extends(requests[1], requests[2])
