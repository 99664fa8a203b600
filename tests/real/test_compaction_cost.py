"""What a compaction costs a real server, by its own figures. Its replies are forced, its model is tiny."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.server.loopback import request_json
from benchmarks.compaction import MOST_BESIDE, Replies, Scenario, is_for_summary, run_session
from benchmarks.compaction_real import binary, built_in, play, small_model
from benchmarks.forcing_proxy import ForcingProxy, Handler
from benchmarks.session12 import make_bench

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

SHORT = Scenario("short", pages=5, tokens=700, window=4_096, steps=8)
PROMISED = 16_384


class Promising(Handler):
    """Says of the server that it has a larger window than it has."""

    def answer_get(self) -> None:
        if self.path != "/props":
            super().answer_get()
            return
        proxy = self.server.proxy
        props: Any = request_json(proxy.upstream_port, "GET", "/props", proxy.api_key, None, timeout=60)[1]
        props["default_generation_settings"]["n_ctx"] = PROMISED
        body = json.dumps(props).encode("utf-8")
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def test_request_for_a_summary_is_read_behind_what_the_server_has(tmp_path: Path):
    model = small_model(tmp_path, SHORT.window)
    with built_in(model, SHORT.window, tmp_path / "server") as served:
        found = play(SHORT, "constrained", served, tmp_path / "bench")
    assert (found.exit_code, found.refused) == (0, 0)
    [evaluated] = found.summaries
    assert evaluated <= MOST_BESIDE
    # Without a cache each prompt would have been read whole, the last one before the summary among them.
    assert found.evaluated < 2 * found.largest_prompt


def test_prompt_that_a_server_refuses_although_it_promised_more_is_no_end(tmp_path: Path):
    model, bench = small_model(tmp_path, SHORT.window), make_bench(tmp_path / "bench")
    replies = Replies(SHORT, "constrained")
    with (
        binary(model, SHORT.window, tmp_path) as served,
        ForcingProxy(served.port, served.api_key, replies, Promising) as proxy,
    ):
        exit_code = run_session(SHORT, "constrained", bench, proxy.url, served.count)
    assert exit_code == 0
    assert len(proxy.timings) == len(proxy.requests) - 1  # those of a refused prompt are none
    assert any(map(is_for_summary, proxy.requests))
