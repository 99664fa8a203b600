"""A server that is only reached, not managed."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from agent.core.errors import ServerError
from agent.server.probe import Offer
from agent.server.remote import StillLoadingError, describe

PROPS = {"default_generation_settings": {"n_ctx": 4096}, "total_slots": 2}


class Stub(ThreadingHTTPServer):
    answers: dict[str, tuple[int, object]]
    keys: list[str | None]


@pytest.fixture
def server() -> Iterator[Stub]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            stub.keys.append(self.headers["Authorization"])
            status, body = stub.answers.get(self.path, (404, {}))
            raw = json.dumps(body).encode("utf-8")
            self.send_response(status)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *args: object) -> None:
            return

    stub = Stub(("127.0.0.1", 0), Handler)
    stub.answers, stub.keys = {"/health": (200, {}), "/props": (200, PROPS)}, []
    thread = threading.Thread(target=stub.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield stub
    stub.shutdown()
    stub.server_close()
    thread.join()


def url(server: Stub) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}"


def test_context_and_slots_are_read_from_the_server(server: Stub):
    assert describe(url(server), "secret") == Offer(4096, 2)
    assert set(server.keys) == {"Bearer secret"}


def test_server_without_a_key_is_asked_without_one(server: Stub):
    describe(url(server))
    assert set(server.keys) == {None}


def test_other_kind_of_server_has_an_unknown_context(server: Stub):
    server.answers = {"/health": (200, {})}
    assert describe(url(server)) == Offer(0, 1, engine="unknown")


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({"/health": (503, {"error": {"message": "Loading model"}})}, "still loading"),
        ({"/health": (200, {}), "/props": (401, {})}, "does not accept the key"),
        ({"/health": (200, {}), "/props": (200, {"role": "router"})}, "router"),
        ({"/health": (500, {}), "/props": (500, {})}, "HTTP 500"),
    ],
)
def test_server_that_cannot_be_used_is_told_why(answers: dict, words: str, server: Stub):
    server.answers = answers
    with pytest.raises(ServerError, match=words):
        describe(url(server))


@pytest.mark.parametrize(("key", "words"), [("", "it wants one"), ("wrong", "one was sent")])
def test_refused_key_is_told_from_a_missing_one(key: str, words: str, server: Stub):
    server.answers["/props"] = (401, {})
    with pytest.raises(ServerError) as refused:
        describe(url(server), key)
    assert words in refused.value.hint


@pytest.mark.parametrize("path", ["/health", "/props"])
def test_server_that_loads_its_model_may_be_asked_again(path: str, server: Stub):
    server.answers[path] = (503, {"error": {"message": "Loading model"}})
    with pytest.raises(StillLoadingError):
        describe(url(server))


@pytest.mark.parametrize(
    ("caps", "able"),
    [
        ({"supports_tools": True, "supports_tool_calls": True}, True),
        ({"supports_tools": True, "supports_tool_calls": False}, False),
        ({"supports_system_role": True}, None),
        ("odd", None),
    ],
)
def test_chat_template_tells_whether_the_model_can_call_tools(caps: object, able: bool | None, server: Stub):
    server.answers["/props"] = (200, {**PROPS, "chat_template_caps": caps})
    assert describe(url(server)).tool_calls is able


def test_address_where_nobody_answers_is_named():
    with pytest.raises(ServerError, match=r"no server answers at http://127\.0\.0\.1:1: "):
        describe("http://127.0.0.1:1")


@pytest.mark.parametrize("host", ["two..dots", f"{'a' * 64}.example"])
def test_address_that_no_server_can_have_is_named(host: str):
    with pytest.raises(ServerError, match=f"no server answers at http://{host}:80: .*no name of a host"):
        describe(f"http://{host}:80")
