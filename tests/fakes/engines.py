"""Servers that are no llama-server: each speaks the JSON of its engine, and answers chats from a script.

What they send follows the engines' own documentation and sources: vLLM, SGLang, LM Studio, Ollama, and a
strict server that knows OpenAI's fields and nothing else. None of them sends `timings`.
"""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from tests.fakes import chat
from tests.fakes.script import Step, StepLike, parse_step

Kind = Literal["vllm", "sglang", "lm-studio", "ollama", "strict", "bare"]
OPENAI_FIELDS = frozenset(
    {
        "model", "messages", "tools", "tool_choice", "response_format", "stream", "stream_options",
        "max_tokens", "max_completion_tokens", "temperature", "top_p", "seed", "stop",
    }
)  # fmt: skip
_OWNER = {"vllm": "vllm", "sglang": "sglang", "lm-studio": "organization_owner", "ollama": "library"}


@dataclass(kw_only=True)
class Habits:
    """How the engine behaves. `loaded` are those of `models` that need no loading (None = all).

    `tools` says whether chats may have tools, `schemas` whether replies can be bound; `usage` whether tokens
    are counted. `other_tokens` are generated for somebody else during each chat. With `whole_calls` a tool
    call comes in one piece, as from Ollama. `complaint` is the body of a 400 to every chat.
    """

    kind: Kind
    models: Sequence[str] = ("served/model",)
    loaded: Sequence[str] | None = None
    context: int = 16_384
    api_key: str = ""
    refused: Sequence[str] = ()
    tools: bool = True
    schemas: bool = True
    usage: bool = True
    cached: int = 0
    drafts_of: int = 0
    other_tokens: int = 0
    whole_calls: bool = False
    capabilities: Sequence[str] = ("completion", "tools")
    parameters: str = ""
    complaint: Any = None


@dataclass
class Counters:
    requests: int = 0
    generated: int = 0
    rounds: int = 0
    drafted: int = 0
    accepted: int = 0


class EngineServer:
    """Serves on the loopback address until `close()`. `bodies` are the chat requests, `paths` all of them."""

    def __init__(self, habits: Habits, *script: StepLike, port: int = 0) -> None:
        self.habits = habits
        self.counters = Counters()
        self.bodies: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self._script: Iterator[StepLike] = iter(script)
        self._lock = threading.Lock()
        server = self

        class Handler(_Handler):
            engine = server

        self._http = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), name="engine")
        self._thread.start()

    @property
    def port(self) -> int:
        return self._http.server_address[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def next_step(self) -> Step | None:
        with self._lock:
            raw = next(self._script, None)
            return None if raw is None else parse_step(raw)

    def count(self, step: Step, tokens: int) -> None:
        counters, size = self.counters, self.habits.drafts_of
        with self._lock:
            counters.requests += 1
            counters.generated += tokens + self.habits.other_tokens
            counters.rounds += step.drafted // size if size else 0
            counters.drafted += step.drafted
            counters.accepted += step.accepted

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@dataclass
class RefusalError(Exception):
    status: int
    body: Any = field(default_factory=dict)


class _Handler(BaseHTTPRequestHandler):
    engine: EngineServer

    def log_message(self, *_: Any) -> None:
        return

    def do_GET(self) -> None:
        self._serve(None)

    def do_POST(self) -> None:
        self._serve(json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0))))

    def _serve(self, body: Any) -> None:
        self.engine.paths.append(self.path)
        try:
            answer = self._answer(body)
        except RefusalError as refusal:
            return self._send(refusal.status, json.dumps(refusal.body), "application/json")
        except OSError:
            return None
        if isinstance(answer, str):
            return self._send(200, answer, "text/plain; version=0.0.4")
        return self._send(200, json.dumps(answer), "application/json") if answer is not None else None

    def _send(self, status: int, text: str, kind: str) -> None:
        raw = text.encode("utf-8")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def _answer(self, body: Any) -> Any:
        habits = self.engine.habits
        key = habits.api_key
        if key and self.path.startswith("/v1") and self.headers.get("Authorization") != f"Bearer {key}":
            raise RefusalError(401, {"error": "Unauthorized"})
        if self.path == "/v1/chat/completions":
            return self._chat(body)
        if self.path == "/v1/models":
            return {"object": "list", "data": [_listed(habits, name) for name in habits.models]}
        if self.path == "/api/generate" and habits.kind == "ollama":
            habits.loaded = (*(habits.models if habits.loaded is None else habits.loaded), body["model"])
            return {"model": body["model"], "done": True, "done_reason": "load"}
        pages = _pages(self.engine, body)
        if self.path in pages:
            return pages[self.path]
        if habits.kind == "lm-studio":
            return {"error": f"Unexpected endpoint or method. ({self.command} {self.path})"}
        raise RefusalError(404, {"detail": "Not Found"})

    def _chat(self, body: dict[str, Any]) -> None:
        self.engine.bodies.append(body)
        habits = self.engine.habits
        check_request(habits, body)
        step = self.engine.next_step()
        if step is None:
            raise RefusalError(500, {"error": {"message": "the script has no more steps"}})
        reply = chat.reply_to(body, step)
        deltas = list(chat.deltas(reply, len(self.engine.bodies)))
        if habits.whole_calls and reply.calls:
            deltas = [{"role": "assistant", "content": reply.text}, *_whole(reply)]
        tokens = len(chat.tokenize(reply.rendered))
        self.engine.count(step, tokens)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for delta in deltas:
            self._chunk({"choices": [{"index": 0, "delta": _renamed(delta), "finish_reason": None}]})
        end = {"index": 0, "delta": {}, "finish_reason": reply.finish_reason}
        self._chunk({"choices": [end]})
        if habits.usage and (body.get("stream_options") or {}).get("include_usage"):
            self._chunk({"choices": [], "usage": _usage(habits, body, tokens)})
        self.wfile.write(b"data: [DONE]\n\n")

    def _chunk(self, value: Mapping[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(value).encode("utf-8") + b"\n\n")


def check_request(habits: Habits, body: Mapping[str, Any]) -> None:
    """Raises RefusalError for what the engine does not take, in its own words."""
    name = body.get("model")
    if habits.kind != "bare" and name not in habits.models:
        raise RefusalError(
            404, {"error": {"message": f'model "{name}" not found', "type": "not_found_error"}}
        )
    if habits.complaint is not None:
        raise RefusalError(400, habits.complaint)
    unknown = [one for one in body if one in habits.refused]
    if "reasoning_content" in habits.refused and any("reasoning_content" in one for one in body["messages"]):
        unknown.append("reasoning_content")
    if habits.kind == "strict":
        unknown += [one for one in body if one not in OPENAI_FIELDS]
    if unknown:
        problems = [
            {"type": "extra_forbidden", "loc": ["body", one], "msg": "Extra inputs are not permitted"}
            for one in unknown
        ]
        raise RefusalError(422, {"detail": problems})
    if body.get("tools") and not habits.tools:
        message = (
            f"registry.ollama.ai/library/{name} does not support tools"
            if habits.kind == "ollama"
            else '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
        )
        raise RefusalError(400, {"error": {"message": message, "type": "BadRequestError", "code": 400}})
    if body.get("response_format") and not habits.schemas:
        raise RefusalError(
            400, {"error": {"message": "response_format of type json_schema is not available here"}}
        )


def _listed(habits: Habits, name: str) -> dict[str, Any]:
    record = {"id": name, "object": "model", "created": 0, "owned_by": _OWNER.get(habits.kind, "somebody")}
    if habits.kind in ("vllm", "sglang"):
        record |= {"root": f"/models/{name}", "max_model_len": habits.context}
    return record


def _pages(engine: EngineServer, body: Any) -> dict[str, Any]:
    """What the engine answers beside OpenAI's API."""
    habits = engine.habits
    loaded = habits.models if habits.loaded is None else habits.loaded
    if habits.kind == "vllm":
        pages: dict[str, Any] = {"/version": {"version": "0.20.1"}, "/health": {}}
        return pages | ({"/metrics": vllm_metrics(engine.counters, habits)} if habits.drafts_of else {})
    if habits.kind == "sglang":
        info = {
            "version": "0.5.9",
            "context_length": None,
            "max_running_requests": 4,
            "speculative_algorithm": "DFLASH" if habits.drafts_of else None,
        }
        pages = {"/get_model_info": {"model_path": habits.models[0]}, "/server_info": info, "/health": {}}
        return pages | ({"/metrics": sglang_metrics(engine.counters)} if habits.drafts_of else {})
    if habits.kind == "lm-studio":
        return {"/api/v0/models": {"data": [_studio_model(habits, name, loaded) for name in habits.models]}}
    if habits.kind == "ollama":
        shown = {"capabilities": list(habits.capabilities), "parameters": habits.parameters}
        running = [{"name": name, "model": name, "context_length": habits.context} for name in loaded]
        return {
            "/api/version": {"version": "0.14.0"},
            "/api/ps": {"models": running},
            "/api/show": shown if (body or {}).get("model") in habits.models else {},
        }
    return {}


def _studio_model(habits: Habits, name: str, loaded: Sequence[str]) -> dict[str, Any]:
    kind = "embeddings" if name.startswith("embed") else "llm"
    record = {"id": name, "type": kind, "state": "not-loaded", "max_context_length": 131_072}
    if name in loaded:
        record |= {"state": "loaded", "loaded_context_length": habits.context}
    return record


def vllm_metrics(counters: Counters, habits: Habits) -> str:
    """As vLLM prints it, comments and neighbours included; the first positions are kept most often."""
    labels = 'engine="0",model_name="served/model"'
    left, rows = counters.accepted, []
    for position in range(habits.drafts_of):
        kept = min(left, counters.rounds)
        left -= kept
        rows.append(
            f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{{labels},position="{position}"}} {kept}.0'
        )
    lines = [
        "# HELP vllm:num_requests_running Number of requests in model execution batches.",
        "# TYPE vllm:num_requests_running gauge",
        f"vllm:num_requests_running{{{labels}}} 0.0",
        f"vllm:num_requests_waiting{{{labels}}} 0.0",
        f"vllm:generation_tokens_total{{{labels}}} {counters.generated}.0",
        f'vllm:request_success_total{{{labels},finished_reason="stop"}} {counters.requests}.0',
        f'vllm:request_success_total{{{labels},finished_reason="length"}} 0.0',
        "# TYPE vllm:spec_decode_num_drafts_total counter",
        f"vllm:spec_decode_num_drafts_total{{{labels}}} {counters.rounds}.0",
        f"vllm:spec_decode_num_drafts_created{{{labels}}} 1.7e+09",
        f"vllm:spec_decode_num_draft_tokens_total{{{labels}}} {counters.drafted}.0",
        f"vllm:spec_decode_num_accepted_tokens_total{{{labels}}} {counters.accepted}.0",
        *rows,
        "python_gc_objects_collected_total 17.0",
    ]
    return "\n".join(lines) + "\n"


def sglang_metrics(counters: Counters) -> str:
    """As SGLang prints it: gauges of the latest decode interval, and its own last request still running."""
    rate = counters.accepted / counters.drafted if counters.drafted else 0.0
    length = 1 + counters.accepted / counters.rounds if counters.rounds else 0.0
    labels = 'engine_type="unified",model_name="served/model",tp_rank="0"'
    return (
        "# TYPE sglang:spec_accept_length gauge\n"
        f"sglang:spec_accept_length{{{labels}}} {length}\n"
        f"sglang:spec_accept_rate{{{labels}}} {rate}\n"
        f"sglang:num_running_reqs{{{labels}}} {min(1, counters.requests)}.0\n"
        f"sglang:num_requests_total{{{labels}}} {counters.requests}.0\n"
        f"sglang:generation_tokens_total{{{labels}}} {counters.generated}.0\n"
    )


def _usage(habits: Habits, body: Mapping[str, Any], tokens: int) -> dict[str, Any]:
    prompt = len(chat.tokenize(chat.render_prompt(body)))
    usage: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": tokens}
    return usage | ({"prompt_tokens_details": {"cached_tokens": habits.cached}} if habits.cached else {})


def _renamed(delta: dict[str, Any]) -> dict[str, Any]:
    """vLLM and Ollama call thoughts `reasoning`."""
    return {"reasoning" if name == "reasoning_content" else name: value for name, value in delta.items()}


def _whole(reply: chat.Reply) -> list[dict[str, Any]]:
    return [
        {
            "tool_calls": [
                {
                    "index": index,
                    "id": f"call_{index}",
                    "type": "function",
                    "function": {"name": one.name, "arguments": one.raw_arguments},
                }
            ]
        }
        for index, one in enumerate(reply.calls)
    ]
