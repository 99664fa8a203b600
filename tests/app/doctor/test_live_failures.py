"""Each thing that can be wrong with a running server is found, and told with what to do about it."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from agent.app.doctor.finding import Finding
from agent.app.doctor.live import Live
from tests.conftest import StartServer
from tests.fakes.script import Step, call

Ask = Callable[..., Any]
Answers = Mapping[str, Any]
WORD = Step(text="word", times=0)


class PlainServer:
    """Answers each path with the same status and JSON; 404 for others."""

    def __init__(self, answers: Mapping[str, tuple[int, Any]]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status, answer = answers.get(self.path, (404, {}))
                body = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                return

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,))
        self._thread.start()

    def close(self) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


@pytest.fixture
def plain() -> Iterator[Callable[[Mapping[str, tuple[int, Any]]], PlainServer]]:
    started: list[PlainServer] = []

    def start(answers: Mapping[str, tuple[int, Any]]) -> PlainServer:
        started.append(PlainServer(answers))
        return started[-1]

    yield start
    for server in started:
        server.close()


async def found_by(look: Live) -> dict[str, Finding]:
    return {finding.code: finding async for finding in look.examine()}


@pytest.mark.parametrize(
    ("status", "answer", "level", "words"),
    [
        (500, {"error": {"message": "Unknown filter: tojson"}}, "problem", "Unknown filter: tojson"),
        (200, {"prompt": "<|im_start|>user"}, "problem", "cannot be used"),
        (200, {"prompt": "Hello, without them"}, "warning", "leaves tools out"),
        (200, {"prompt": "glob Hello"}, "ok", "renders"),
    ],
)
async def test_template(live: Ask, plain: Ask, status: int, answer: Answers, level: str, words: str):
    found = (await found_by(live(plain({"/apply-template": (status, answer)}))))["template"]
    assert (found.level, bool(found.remedy)) == (level, level != "ok")
    assert words in found.message


@pytest.mark.parametrize(
    ("status", "timings", "level", "words"),
    [
        (200, {"cache_n": 10, "prompt_n": 190}, "warning", "10 tokens are reused and 190 are read again"),
        (200, {"cache_n": 199, "prompt_n": 1}, "ok", "199 of 200"),
        (200, {}, "ok", "does not say"),
        (400, {}, "warning", "refused"),
    ],
)
async def test_repeated_prompt(live: Ask, plain: Ask, status: int, timings: Answers, level: str, words: str):
    server = plain({"/v1/chat/completions": (status, {"timings": timings})})
    found = (await found_by(live(server)))["prefix"]
    assert (found.level, bool(found.remedy)) == (level, level != "ok")
    assert words in found.message


def growing(cached: int) -> list[Any]:
    """Two repeated prompts, a call, and a reply to its result of which so much was cached."""
    chunks = (
        {"choices": [{"index": 0, "delta": {"content": "done"}, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {"choices": [], "timings": {
            "cache_n": cached, "prompt_n": 900, "prompt_ms": 9.0, "predicted_n": 1, "predicted_ms": 1.0,
        }},
    )  # fmt: skip
    return ["warm", "warm", call("glob", pattern="*.md"), Step(chunks=chunks), WORD]


@pytest.mark.parametrize(("cached", "level"), [(3, "warning"), (9000, "ok")])
async def test_turn_that_goes_on_after_a_tool_call(
    live: Ask, scripted_server: StartServer, cached: int, level: str
):
    found = (await found_by(live(scripted_server(*growing(cached)))))["turn-prefix"]
    assert (found.level, bool(found.remedy)) == (level, level != "ok")
    assert "are reused after a tool call" in found.message


@pytest.mark.parametrize("kind", ["dflash", "mtp", "draft", "eagle3"])
async def test_draft_model_that_drafts_nothing(live: Ask, scripted_server: StartServer, kind: str):
    found = (await found_by(live(scripted_server(WORD), speculation=kind, managed=True)))["drafting"]
    assert (found.level, found.message) in {
        ("problem", f"{kind}: nothing is drafted"),
        ("warning", f"{kind}: the server says nothing about drafting"),
    }
    assert found.remedy


@pytest.mark.parametrize(("drafted", "level"), [(0, "warning"), (48, "ok")])
async def test_drafts_from_the_context_are_tried_with_a_text_to_repeat(
    live: Ask, scripted_server: StartServer, drafted: int, level: str
):
    server = scripted_server(
        "warm",
        "warm",
        "no call",
        "bound",
        "measured",
        Step(text="part_0", drafted=drafted, accepted=drafted // 2),
        WORD,
    )
    found = (await found_by(live(server, speculation="ngram-mod", managed=True)))["drafting"]
    assert (found.level, bool(found.remedy)) == (level, level != "ok")
    body = server.chats[5].body
    asked, said, asked_again = (one["content"] for one in body["messages"])
    assert (asked, said) == (asked_again, json.loads(body["grammar"].removeprefix("root ::= ")))


async def test_result_of_a_call_that_the_server_refuses(live: Ask, scripted_server: StartServer):
    refusal = Step(fault="http_500", message="Failed to parse tool call arguments as JSON", times=0)
    server = scripted_server("warm", "warm", call("glob", pattern="*.md"), refusal)
    found = (await found_by(live(server)))["tool-call"]
    assert found.level == "problem"
    assert "refuses the result of a tool call" in found.message
    assert "constrained" in found.remedy


async def test_replies_that_no_schema_binds(live: Ask, scripted_server: StartServer):
    found = (await found_by(live(scripted_server(WORD))))["constrained"]
    assert (found.level, found.message) == ("warning", "the server does not bind replies to a schema")
    assert found.remedy


async def test_bound_calls_show_that_replies_are_bound(live: Ask, scripted_server: StartServer):
    glob = call("glob", pattern="*.md")
    server = scripted_server("warm", "warm", glob, glob)
    found = await found_by(live(server, protocol="constrained"))
    assert (found["tool-call"].level, found["constrained"].level) == ("ok", "ok")


async def test_every_finding_that_is_not_fine_says_what_to_do(live: Ask, scripted_server: StartServer):
    for step in (WORD, Step(fault="http_500", times=0), Step(fault="garbage", times=0)):
        found = await found_by(live(scripted_server(step), speculation="dflash", managed=True))
        assert [one for one in found.values() if one.level != "ok" and not one.remedy] == []
