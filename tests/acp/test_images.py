"""Images in the prompts of an editor: taken where the model can see, refused where it cannot."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from acp import PROTOCOL_VERSION, RequestError, image_block, text_block

from tests.acp.editor import Editor, editing
from tests.app.talk import extends, messages_of
from tests.conftest import StartServer

pytestmark = pytest.mark.timeout(180)
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(64))
DATA = base64.b64encode(PNG).decode()


async def capabilities(editor: Editor) -> Any:
    answer = await editor.agent.initialize(protocol_version=PROTOCOL_VERSION)
    assert answer.agent_capabilities is not None
    return answer.agent_capabilities.prompt_capabilities


async def show(editor: Editor, session: str, data: str = DATA) -> Any:
    blocks = [text_block("What is on"), image_block(data, "image/png"), text_block("?")]
    return await editor.agent.prompt(session_id=session, prompt=blocks)


async def test_an_image_is_sent_to_a_model_that_can_see_and_stays_the_same(use: StartServer, work: Path):
    server = use("A button.", "Yes.", vision=True)
    async with editing(work) as editor:
        assert (await capabilities(editor)).image
        session = (await editor.agent.new_session(cwd=str(work), mcp_servers=[])).session_id
        assert (await show(editor, session)).stop_reason == "end_turn"
        await editor.say(session, "Sure?")
    image, text = messages_of(server)[0][-1]["content"]
    assert image == {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}"}}
    assert "What is on @" in text["text"]
    assert extends(*messages_of(server))


async def test_a_model_that_cannot_see_refuses_the_prompt_in_one_line(use: StartServer, work: Path):
    server = use("Fine.")
    async with editing(work) as editor:
        assert not (await capabilities(editor)).image
        session = (await editor.agent.new_session(cwd=str(work), mcp_servers=[])).session_id
        with pytest.raises(RequestError, match="an image, and its server says that the model cannot"):
            await show(editor, session)
        assert (await editor.say(session, "Without it")).stop_reason == "end_turn"
    assert "image_url" not in json.dumps(messages_of(server))


async def test_what_is_no_image_is_refused_and_the_session_goes_on(use: StartServer, work: Path):
    use("Fine.", vision=True)
    async with editing(work) as editor:
        session = await editor.begin(work)
        with pytest.raises(RequestError, match="an image of the prompt cannot be used: it is no PNG"):
            await show(editor, session, base64.b64encode(b"text").decode())
        assert (await editor.say(session, "Without it")).stop_reason == "end_turn"


async def test_a_server_that_is_not_there_costs_no_editor_its_start(
    work: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AGENT_SERVER_URL", "http://127.0.0.1:9")
    async with editing(work) as editor:
        assert not (await capabilities(editor)).image
