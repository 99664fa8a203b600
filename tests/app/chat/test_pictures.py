"""Images that a person names: sent where the model can see, told in a line where it cannot."""

import base64
import json
from pathlib import Path

import pytest

from agent.app.chat.pictures import MOST_BYTES, Refused, keep_picture
from agent.app.chat.record import fork_of
from agent.core.messages import Picture
from agent.session.catalogue import remove_session
from tests.app.talk import extends, messages_of, records_in, talking
from tests.conftest import StartServer
from tests.fakes.script import call

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(64))
URL = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
CANNOT_SEE = "is not attached: its server says that the model cannot see images"


def notices(talk) -> list[str]:
    return [event.text for event in talk.of("notice")]


async def test_an_image_goes_before_the_text_and_stays_the_same_in_later_requests(
    scripted_server: StartServer, work: Path
):
    (work / "shot.png").write_bytes(PNG)
    server = scripted_server("A button.", call("glob", pattern="*"), "Yes.", vision=True)
    async with talking(work, server) as talk:
        await talk.turn("what is on @shot.png ?")
        (work / "shot.png").write_bytes(b"another")
        await talk.turn("sure?")
    image, text = messages_of(server)[0][-1]["content"]
    assert image == {"type": "image_url", "image_url": {"url": URL}}
    assert text["text"].endswith("\n\nwhat is on @shot.png ?")
    assert extends(messages_of(server)[0], messages_of(server)[1])
    assert extends(messages_of(server)[1], messages_of(server)[2])
    assert not notices(talk)


async def test_a_model_that_cannot_see_gets_the_text_and_the_person_a_line(
    scripted_server: StartServer, work: Path
):
    (work / "shot.png").write_bytes(PNG)
    server = scripted_server("Where?")
    async with talking(work, server) as talk:
        await talk.turn("what is on @shot.png ?")
        assert await talk.session.command("blindness", {})
    assert isinstance(messages_of(server)[0][-1]["content"], str)
    assert notices(talk) == [f"@shot.png {CANNOT_SEE}"]


async def test_a_resumed_session_sends_the_same_image(
    scripted_server: StartServer, work: Path, homes: Path, tmp_path: Path
):
    outside = tmp_path / "my shot.png"
    outside.write_bytes(PNG)
    server = scripted_server("A button.", "Still.", vision=True)
    async with talking(work, server) as talk:
        await talk.turn(f'look at @"{outside}"')
    outside.unlink()
    async with talking(work, server, resume="last") as talk:
        await talk.turn("and now?")
    assert extends(*messages_of(server))
    assert URL in json.dumps(messages_of(server)[1])
    assert "base64" not in json.dumps(records_in(homes / "state"))


async def test_a_copy_of_a_session_has_its_images_when_the_first_one_is_deleted(
    scripted_server: StartServer, work: Path, homes: Path
):
    (work / "shot.png").write_bytes(PNG)
    server = scripted_server("A button.", "Still.", vision=True)
    async with talking(work, server) as talk:
        await talk.turn("what is on @shot.png ?")
        first = talk.session.facts.session_id
    copy = fork_of(work, first)
    [folder] = (homes / "state").glob(f"sessions/*/{first}")
    remove_session(folder)
    async with talking(work, server, resume=copy) as talk:
        await talk.turn("and now?")
    assert extends(*messages_of(server))
    assert URL in json.dumps(messages_of(server)[1])


async def test_a_copy_that_a_person_goes_on_with_has_its_images_too(
    scripted_server: StartServer, work: Path, homes: Path
):
    (work / "shot.png").write_bytes(PNG)
    server = scripted_server("A button.", "Still.", vision=True)
    async with talking(work, server) as talk:
        await talk.turn("what is on @shot.png ?")
        first = talk.session.facts.session_id
    async with talking(work, server, resume=first, fork=True) as talk:
        [folder] = (homes / "state").glob(f"sessions/*/{first}")
        remove_session(folder)
        await talk.turn("and now?")
    assert URL in json.dumps(messages_of(server)[1])


async def test_a_model_that_cannot_see_takes_over_with_words_instead(
    scripted_server: StartServer, work: Path
):
    (work / "shot.png").write_bytes(PNG)
    seeing, blind = scripted_server("A button.", vision=True), scripted_server("I see nothing.")
    async with talking(work, seeing) as talk:
        await talk.turn("what is on @shot.png ?")
    async with talking(work, blind, resume="last") as talk:
        await talk.turn("and now?")
    told = json.dumps(messages_of(blind)[0])
    assert "image_url" not in told
    assert "(Images that you cannot see: shot.png)" in told


@pytest.mark.parametrize(
    ("command", "arguments"), [("btw", {"question": "What was on it?"}), ("compact", {})]
)
async def test_a_request_outside_of_turns_sends_no_image_to_a_model_that_cannot_see(
    scripted_server: StartServer, work: Path, command: str, arguments: dict[str, str]
):
    (work / "shot.png").write_bytes(PNG)
    seeing = scripted_server(" ".join(f"Button {number}." for number in range(400)), vision=True)
    blind = scripted_server("A button, they say.")
    async with talking(work, seeing) as talk:
        await talk.turn("what is on @shot.png ?")
    async with talking(work, blind, resume="last") as talk:
        await talk.session.command(command, arguments)
    told = json.dumps(messages_of(blind)[0])
    assert "image_url" not in told
    assert "(Images that you cannot see: shot.png)" in told


async def test_an_image_whose_copy_is_gone_stays_in_the_session_and_is_told_in_words_to_a_later_one(
    scripted_server: StartServer, work: Path, homes: Path
):
    (work / "shot.png").write_bytes(PNG)
    server = scripted_server("A button.", "Still.", "None.", vision=True)
    async with talking(work, server) as talk:
        await talk.turn("what is on @shot.png ?")
        for kept in (homes / "state").glob("sessions/*/*/pictures/*"):
            kept.unlink()
        await talk.turn("and now?")
    async with talking(work, server, resume="last") as talk:
        await talk.turn("and now?")
    first, second, resumed = messages_of(server)
    assert extends(first, second)
    assert "(The image shot.png is no longer there.)" in json.dumps(resumed)


def test_what_is_no_image_is_refused_in_a_sentence(tmp_path: Path):
    page, large, gone = tmp_path / "page.png", tmp_path / "large.png", tmp_path / "gone.png"
    page.write_text("<html>", "utf-8")
    with large.open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    found = [keep_picture(path, path.name, tmp_path / "kept") for path in (page, large, gone)]
    assert [one.why if isinstance(one, Refused) else "" for one in found] == [
        "it is no PNG, JPEG, GIF or BMP, which is what model servers read",
        "it is larger than 10 MiB",
        "it cannot be read: No such file or directory",
    ]


def test_the_same_image_is_kept_once(tmp_path: Path):
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "b.png").write_bytes(PNG)
    kept = [keep_picture(tmp_path / name, name, tmp_path / "kept") for name in ("a.png", "b.png")]
    files = {one.file for one in kept if isinstance(one, Picture)}
    assert len(files) == 1
    assert len(list((tmp_path / "kept").iterdir())) == 1
