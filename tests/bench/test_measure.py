"""One request and its figures."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent.bench.measure import MeasureOptions, measure, request_body
from agent.bench.prompt import BenchPrompt
from agent.core.errors import ServerError
from agent.server.record import Endpoint
from tests.bench.rig import PROMPT, endpoint_of
from tests.conftest import StartServer
from tests.fakes.script import Step, call

METRICS = """# HELP llamacpp:spec_decode_num_drafts_total Number of drafts.
# TYPE llamacpp:spec_decode_num_drafts_total counter
llamacpp:spec_decode_num_drafts_total {drafts}
llamacpp:spec_decode_num_draft_tokens_total {drafted}
llamacpp:spec_decode_num_accepted_tokens_total {accepted}
llamacpp:spec_decode_num_accepted_tokens_per_pos_total{{position="0"}} {first}
llamacpp:spec_decode_num_accepted_tokens_per_pos_total{{position="1"}} {second}
"""
PLACE = Endpoint(base_url="http://server.example", api_key="", profile="x", context_tokens=0)


def reply(**changes: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}], **changes}


def canned(answer: Any, metrics: Sequence[str] = ()) -> httpx.MockTransport:
    """A server with one answer, and a page of figures for each time that it is asked for them."""
    pages = list(metrics)

    def answer_to(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/metrics":
            return httpx.Response(200, text=pages.pop(0)) if pages else httpx.Response(404)
        return httpx.Response(200, json=answer)

    return httpx.MockTransport(answer_to)


def page(drafts: int, drafted: int, accepted: int, first: int = 0, second: int = 0) -> str:
    return METRICS.format(drafts=drafts, drafted=drafted, accepted=accepted, first=first, second=second)


async def test_times_are_the_servers_own_where_it_reports_them(scripted_server: StartServer):
    server = scripted_server(Step(text="One two three", drafted=8, accepted=2))
    found = await measure(endpoint_of(server), PROMPT, MeasureOptions())
    assert not found.measured_here
    assert (found.decode_rate, found.prompt_rate) == (pytest.approx(100), pytest.approx(1000))
    assert (found.drafted, found.accepted, found.acceptance) == (8, 2, 0.25)
    assert found.draft_share == pytest.approx(2 / found.decoded_tokens)
    assert found.text == "One two three"


async def test_reply_in_one_piece_has_the_same_figures(scripted_server: StartServer):
    server = scripted_server(Step(text="One two three", drafted=8, accepted=2, times=2))
    streamed = await measure(endpoint_of(server), PROMPT, MeasureOptions())
    whole = await measure(endpoint_of(server), PROMPT, MeasureOptions(stream=False))
    assert server.chats[1].body["stream"] is False
    assert (whole.text, whole.decode_rate, whole.drafted) == (
        streamed.text,
        streamed.decode_rate,
        streamed.drafted,
    )


async def test_prompt_is_evaluated_again_each_time(scripted_server: StartServer):
    server = scripted_server(Step(text="yes", times=2))
    for _ in range(2):
        found = await measure(endpoint_of(server), PROMPT, MeasureOptions())
        assert found.cached_tokens == 0
    assert [chat.body["cache_prompt"] for chat in server.chats] == [False, False]


async def test_nothing_drafted_is_zero_where_the_server_has_timings(scripted_server: StartServer):
    found = await measure(endpoint_of(scripted_server("yes")), PROMPT, MeasureOptions())
    assert (found.drafted, found.accepted, found.acceptance) == (0, 0, None)


async def test_without_timings_time_is_taken_here_and_drafting_is_not_known(scripted_server: StartServer):
    chunks = tuple({"choices": [{"index": 0, "delta": {"content": word}}]} for word in ("a ", "b ", "c"))
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    usage = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}
    server = scripted_server(Step(chunks=(*chunks, end, usage, "data: [DONE]\n\n")))
    found = await measure(endpoint_of(server), PROMPT, MeasureOptions())
    assert found.measured_here
    assert (found.prompt_tokens, found.decoded_tokens, found.text) == (9, 3, "a b c")
    assert (found.drafted, found.accepted, found.mean_accepted_length) == (None, None, None)
    assert found.prompt_seconds == found.first_token_seconds


async def test_without_timings_and_stream_no_decode_speed_is_made_up():
    answer = reply(usage={"prompt_tokens": 9, "completion_tokens": 3})
    found = await measure(PLACE, PROMPT, MeasureOptions(stream=False, transport=canned(answer)))
    assert (found.measured_here, found.decode_rate, found.prompt_rate) == (True, None, None)


async def test_mean_length_comes_from_the_counters_of_this_request():
    timings = {"predicted_n": 20, "predicted_ms": 100, "draft_n": 30, "draft_n_accepted": 12}
    pages = [page(5, 50, 9, 4, 3), page(11, 80, 21, 10, 9)]
    options = MeasureOptions(stream=False, transport=canned(reply(timings=timings), pages))
    found = await measure(PLACE, PROMPT, options)
    assert (found.checks, found.mean_accepted_length, found.mean_length_source) == (6, 3.0, "metrics")
    assert found.accepted_per_position == (6, 6)


async def test_counters_that_come_after_the_reply_are_waited_for():
    timings = {"predicted_n": 20, "predicted_ms": 100, "draft_n": 30, "draft_n_accepted": 12}
    pages = [page(5, 50, 9), page(5, 50, 9), page(11, 80, 21)]
    options = MeasureOptions(stream=False, transport=canned(reply(timings=timings), pages))
    found = await measure(PLACE, PROMPT, options)
    assert (found.checks, found.mean_accepted_length, found.mean_length_source) == (6, 3.0, "metrics")


async def test_counters_that_somebody_else_moved_too_are_not_used():
    timings = {"predicted_n": 20, "predicted_ms": 100, "draft_n": 30, "draft_n_accepted": 12}
    options = MeasureOptions(
        stream=False, transport=canned(reply(timings=timings), [page(5, 50, 9), page(30, 200, 90)])
    )
    found = await measure(PLACE, PROMPT, options)
    assert (found.drafted, found.mean_accepted_length, found.accepted_per_position) == (30, None, ())


async def test_other_engines_tell_of_drafts_in_their_metrics():
    pages = [text.replace("llamacpp:", "vllm:") for text in (page(0, 0, 0), page(10, 40, 20))]
    answer = reply(usage={"prompt_tokens": 9, "completion_tokens": 31})
    found = await measure(PLACE, PROMPT, MeasureOptions(stream=False, transport=canned(answer, pages)))
    assert (found.drafted, found.accepted, found.mean_accepted_length) == (40, 20, 3.0)
    assert found.measured_here


async def test_without_counters_the_mean_length_is_that_of_the_log(tmp_path: Path):
    log = tmp_path / "server.log"
    line = "draft acceptance = 0.40000 (   12 accepted /    30 generated), mean len =  3.00\n"
    log.write_text(line.replace("3.00", "9.00"), "utf-8")

    def answer_to(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/metrics":
            return httpx.Response(501)
        with log.open("a", encoding="utf-8") as file:
            file.write(line)
        timings = {"predicted_n": 20, "predicted_ms": 100, "draft_n": 30, "draft_n_accepted": 12}
        return httpx.Response(200, json=reply(timings=timings))

    place = Endpoint(base_url=PLACE.base_url, api_key="", profile="x", context_tokens=0, log_file=log)
    options = MeasureOptions(stream=False, transport=httpx.MockTransport(answer_to))
    found = await measure(place, PROMPT, options)
    assert (found.mean_accepted_length, found.mean_length_source, found.checks) == (3.0, "log", 6)


async def test_tool_calls_are_part_of_the_output(scripted_server: StartServer):
    server = scripted_server(call("read", path="a.py"))
    found = await measure(endpoint_of(server), PROMPT, MeasureOptions())
    assert found.text == '\nread({"path": "a.py"})'
    assert found.finish_reason == "tool_calls"


async def test_raw_reply_is_kept_with_its_request_and_without_the_key(scripted_server: StartServer):
    server = scripted_server("yes", api_key="very-secret")
    found = await measure(endpoint_of(server, "very-secret"), PROMPT, MeasureOptions())
    assert found.raw["request"]["messages"] == list(PROMPT.messages)
    assert found.raw["chunks"][-1][1]["timings"]
    assert "very-secret" not in json.dumps(found.raw)


async def test_options_win_over_the_prompt_and_extra_fields_over_both():
    prompt = BenchPrompt(id="a", category="b", messages=PROMPT.messages, max_tokens=5, temperature=1.0)
    assert request_body(prompt, MeasureOptions())["max_tokens"] == 5
    options = MeasureOptions(max_tokens=7, temperature=0.0, extra={"temperature": 2, "cache_prompt": None})
    body = request_body(prompt, options)
    assert (body["max_tokens"], body["temperature"], "cache_prompt" in body) == (7, 2, False)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"fault": "http_500", "message": "no room"}, "HTTP 500: no room"),
        ({"fault": "drop", "text": "a b c d e f g h"}, "broke the connection"),
        ({"fault": "error_event", "text": "a b c d e f", "message": "oh no"}, "broke off its reply: oh no"),
        ({"fault": "garbage"}, "no chat reply"),
        ({"chunks": [{"choices": [{"delta": {"content": "a"}}]}]}, "before the reply was complete"),
    ],
    ids=["refusal", "drop", "error", "garbage", "half"],
)
async def test_failure_is_one_line(step: dict[str, Any], words: str, scripted_server: StartServer):
    with pytest.raises(ServerError) as caught:
        await measure(endpoint_of(scripted_server(step)), PROMPT, MeasureOptions())
    assert words in caught.value.message
    assert "\n" not in caught.value.message


async def test_wrong_key_is_told_with_the_option_that_names_it(scripted_server: StartServer):
    with pytest.raises(ServerError) as caught:
        await measure(endpoint_of(scripted_server("x", api_key="right"), "wrong"), PROMPT, MeasureOptions())
    assert "HTTP 401" in caught.value.message
    assert "--api-key-env" in caught.value.hint


async def test_server_that_is_silent_is_given_up(scripted_server: StartServer):
    server = scripted_server({"fault": "silence"})
    with pytest.raises(ServerError, match=r"sent nothing for 0\.05 s"):
        await measure(endpoint_of(server), PROMPT, MeasureOptions(timeout_seconds=0.05))


async def test_page_that_is_no_reply_is_told():
    with pytest.raises(ServerError, match="no chat reply"):
        await measure(PLACE, PROMPT, MeasureOptions(transport=canned(["not", "a", "reply"])))
