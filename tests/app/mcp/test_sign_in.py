"""Signing in to a remote server, against one that checks everything; a browser is played by a thread."""

import asyncio
import json
import logging
import os
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from agent.app.mcp.admin import pool_of
from agent.app.mcp.servers import signing
from agent.app.mcp.sign_in import is_signed_in, sign_in, sign_out
from agent.core.errors import AgentError, UsageError
from agent.mcp.config import ServerSpec, parse_server
from tests.fakes.oauth_mcp_server import OAuthServer, oauth_mcp_server, visit

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def guarded(homes: Path) -> Iterator[OAuthServer]:
    with oauth_mcp_server() as server:
        yield server


def spec_of(server: OAuthServer, **more: Any) -> ServerSpec:
    return parse_server("one", {"url": server.mcp_url, **more}, "a test")


def browser(address: str) -> bool:
    threading.Thread(target=visit, args=(address,), daemon=True).start()
    return True


async def signed_in(server: OAuthServer, work: Path) -> list[str]:
    said: list[str] = []
    assert await sign_in(spec_of(server), work, said.append, open_browser=browser) == 1
    return said


async def call(server: OAuthServer, work: Path) -> Any:
    pool = pool_of([spec_of(server)], work)
    try:
        return await pool.call("one", "secret", {}, lambda _: None)
    finally:
        await pool.close()


async def test_a_server_that_wants_a_sign_in_says_which_command_makes_one(guarded: OAuthServer, work: Path):
    with pytest.raises(AgentError, match=r"one wants a sign-in \(HTTP 401\)") as caught:
        await call(guarded, work)
    assert caught.value.hint == "`agent mcp login one` signs in"
    assert not guarded.clients


async def test_tokens_of_a_sign_in_are_private_and_used_by_later_sessions(guarded: OAuthServer, work: Path):
    said = await signed_in(guarded, work)
    assert any(line.startswith(f"{guarded.url}/authorize?") for line in said)
    assert (await call(guarded, work)).content[0].text == "the secret"
    file = signing(os.environ).file_of(spec_of(guarded))
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700
    assert guarded.grants == ["authorization_code"]


async def test_a_token_that_has_ended_is_renewed_without_a_person(guarded: OAuthServer, work: Path):
    await signed_in(guarded, work)
    file = signing(os.environ).file_of(spec_of(guarded))
    file.write({**file.read(), "expires_at": time.time() - 1})
    guarded.access.clear()
    assert (await call(guarded, work)).content[0].text == "the secret"
    assert guarded.grants == ["authorization_code", "refresh_token"]
    assert len(guarded.clients) == 1


async def test_a_sign_in_that_was_taken_back_is_told_and_nothing_is_registered_anew(
    guarded: OAuthServer, work: Path
):
    await signed_in(guarded, work)
    guarded.revoke()
    with pytest.raises(AgentError) as caught:
        await call(guarded, work)
    assert "sign" in caught.value.message
    assert "agent mcp login one" in caught.value.hint
    assert len(guarded.clients) == 1


async def test_a_person_who_says_no_is_told_so_and_an_old_sign_in_stays(guarded: OAuthServer, work: Path):
    await signed_in(guarded, work)
    guarded.refuses = True
    with pytest.raises(AgentError, match="The person said no"):
        await sign_in(spec_of(guarded), work, lambda _: None, open_browser=browser)
    assert (await call(guarded, work)).content[0].text == "the secret"


async def test_nobody_who_signs_in_ends_the_wait(guarded: OAuthServer, work: Path):
    with pytest.raises(AgentError, match=r"nobody signed in within 0\.2 seconds"):
        await sign_in(spec_of(guarded), work, lambda _: None, open_browser=lambda _: False, seconds=0.2)
    assert not is_signed_in(spec_of(guarded))


async def test_signing_out_forgets_the_token(guarded: OAuthServer, work: Path):
    await signed_in(guarded, work)
    assert is_signed_in(spec_of(guarded))
    assert sign_out("one") == 1
    assert sign_out("one") == 0
    with pytest.raises(AgentError, match="wants a sign-in"):
        await call(guarded, work)


async def test_tokens_go_to_no_other_address(guarded: OAuthServer, work: Path):
    await signed_in(guarded, work)
    assert not is_signed_in(parse_server("one", {"url": f"{guarded.url}/other"}, "a test"))


async def test_tokens_are_in_no_log_and_in_no_message(
    guarded: OAuthServer, work: Path, homes: Path, caplog: pytest.LogCaptureFixture
):
    with caplog.at_level(logging.INFO):
        said = await signed_in(guarded, work)
        await call(guarded, work)
    token_file = signing(os.environ).file_of(spec_of(guarded)).path
    secret = [
        json.loads(token_file.read_text("utf-8"))["tokens"][key] for key in ("access_token", "refresh_token")
    ]
    others = [path for path in homes.rglob("*") if path.is_file() and path != token_file]
    written = "\n".join([caplog.text, *said, *(path.read_text("utf-8", "replace") for path in others)])
    assert not [token for token in secret if token in written]


@pytest.mark.parametrize(
    "table",
    [{"command": "x"}, {"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": "Bearer ${KEY}"}}],
)
async def test_what_needs_no_sign_in_says_so(homes: Path, work: Path, table: dict[str, Any]):
    with pytest.raises(UsageError):
        await sign_in(parse_server("one", table, "a test"), work, lambda _: None)


async def test_strangers_at_the_callback_do_no_harm(guarded: OAuthServer, work: Path):
    async def stranger(address: str) -> None:
        port = int(address.rpartition(":")[2].partition("/")[0])
        for request in (b"GET /callback HTTP/1.1\r\n\r\n", b"POST / HTTP/1.1\r\n\r\n", b"\xff" * 20_000):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request)
            writer.write_eof()
            with suppress(ConnectionError):
                await reader.read()
            writer.close()

    said: list[str] = []
    news = asyncio.Event()

    def say(line: str) -> None:
        said.append(line)
        news.set()

    signing_in = asyncio.create_task(
        sign_in(spec_of(guarded), work, say, open_browser=lambda _: False, seconds=60)
    )
    async with asyncio.timeout(60):
        while not any(line.startswith("It leads back to") for line in said):
            news.clear()
            await news.wait()
    await stranger(said[-1].split()[4].rstrip(";"))
    browser(said[1])
    assert await signing_in == 1
