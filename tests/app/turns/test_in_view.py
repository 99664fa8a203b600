"""What the model has in front of it is not read to it a second time."""

from pathlib import Path

import pytest

from tests.app.talk import messages_of, talking
from tests.conftest import StartServer
from tests.fakes.script import call
from tests.fakes.scripted_server import ScriptedServer

AS_ABOVE = "src/a.py: unchanged, as shown above."
OLD = "".join(f"value_{number} = {number}\n" for number in range(40))
NEW = OLD.replace("value_7 = 7", "value_7 = 70")


@pytest.fixture
def repo(work: Path) -> Path:
    (work / "src").mkdir()
    (work / "src" / "a.py").write_text(OLD, "utf-8")
    return work


def results(server: ScriptedServer) -> list[str]:
    """The results of tools, as the last request tells them."""
    return [message["content"] for message in messages_of(server)[-1] if message["role"] == "tool"]


async def test_an_attached_file_is_not_read_to_the_model_again(scripted_server: StartServer, repo: Path):
    server = scripted_server(call("read", path="./src/a.py"), "I know.")
    async with talking(repo, server) as talk:
        await talk.turn("explain @src/a.py")
    assert results(server) == [AS_ABOVE]


async def test_a_part_of_what_was_shown_is_in_view_too(scripted_server: StartServer, repo: Path):
    part = call("read", path="src/a.py", start=5, lines=25)
    server = scripted_server(call("read", path="src/a.py"), part, "I know.")
    async with talking(repo, server) as talk:
        await talk.turn("explain")
    whole, again = results(server)
    assert whole.startswith("1\tvalue_0 = 0\n")
    assert again == "src/a.py (lines 5-29 of 40; go on with start=30): unchanged, as shown above."


async def test_more_than_what_was_shown_is_shown(scripted_server: StartServer, repo: Path):
    server = scripted_server(call("read", path="src/a.py"), "I know.")
    async with talking(repo, server) as talk:
        await talk.turn("explain @src/a.py:5-29")
    assert results(server)[0].startswith("1\tvalue_0 = 0\n")


async def test_a_model_that_asks_once_more_is_shown_it_whole(scripted_server: StartServer, repo: Path):
    reading = call("read", path="src/a.py")
    server = scripted_server(reading, reading, "One.", reading, "Two.")
    async with talking(repo, server) as talk:
        await talk.turn("explain")
        await talk.turn("again")
    first, second, third = results(server)
    assert first == third != second == AS_ABOVE


async def test_a_file_that_somebody_changed_is_shown_again(scripted_server: StartServer, repo: Path):
    reading = call("read", path="src/a.py")
    server = scripted_server(reading, "One.", reading, "Two.", reading, "Three.")
    async with talking(repo, server) as talk:
        await talk.turn("explain")
        (repo / "src" / "a.py").write_text(NEW, "utf-8")
        await talk.turn("again")
        (repo / "src" / "a.py").write_text(OLD, "utf-8")
        await talk.turn("and again")
    first, second, third = results(server)
    assert "value_7 = 70" in second
    assert first == third, "the latest text above is another one"


async def test_after_an_edit_that_was_tried_the_file_is_shown(scripted_server: StartServer, repo: Path):
    edit = call("edit", path="src/a.py", old="value_99 = 9", new="x")
    server = scripted_server(call("read", path="src/a.py"), edit, call("read", path="src/a.py"), "Done.")
    async with talking(repo, server, mode="auto") as talk:
        await talk.turn("change it")
    first, refused, again = results(server)
    assert refused != first == again


async def test_what_was_taken_out_of_the_conversation_is_not_in_view(
    scripted_server: StartServer, repo: Path
):
    server = scripted_server("One.", "Two.", call("read", path="src/a.py"), "Three.")
    async with talking(repo, server) as talk:
        await talk.turn("hello")
        await talk.turn("explain @src/a.py")
        await talk.session.command("rewind", {"to_turn": 2, "what": "chat"})
        await talk.turn("explain it")
    assert results(server)[0].startswith("1\tvalue_0 = 0\n")


async def test_what_was_summed_up_is_not_in_view(scripted_server: StartServer, repo: Path):
    long = "word " * 400
    replies = ("Hello.", long, "We looked at a file.", call("read", path="src/a.py"), "Three.")
    server = scripted_server(*replies)
    async with talking(repo, server) as talk:
        await talk.turn("hello")  # the first message stays in view whatever is summed up
        await talk.turn("explain @src/a.py")
        await talk.session.command("compact", {})
        await talk.turn("explain it again")
    assert results(server)[0].startswith("1\tvalue_0 = 0\n")


async def test_a_file_with_the_same_text_is_another_file(scripted_server: StartServer, repo: Path):
    (repo / "src" / "b.py").write_text(OLD, "utf-8")
    server = scripted_server(call("read", path="src/b.py"), "I see.")
    async with talking(repo, server) as talk:
        await talk.turn("explain @src/a.py")
    assert results(server)[0].startswith("1\tvalue_0 = 0\n")


async def test_a_resumed_session_remembers_what_it_showed(scripted_server: StartServer, repo: Path):
    server = scripted_server("One.", call("read", path="src/a.py"), "Two.")
    async with talking(repo, server) as talk:
        await talk.turn("explain @src/a.py")
    async with talking(repo, server, resume="last") as talk:
        await talk.turn("more")
    assert results(server) == [AS_ABOVE]


async def test_a_person_who_names_a_file_again_has_it_shown_again(scripted_server: StartServer, repo: Path):
    server = scripted_server("One.", "Two.")
    async with talking(repo, server) as talk:
        await talk.turn("explain @src/a.py")
        await talk.turn("look again: @src/a.py")
    assert messages_of(server)[-1][-1]["content"].startswith("src/a.py:\n```\n1\tvalue_0 = 0\n")
