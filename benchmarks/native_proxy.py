"""Stands between the agent and a real server, and has the model make native calls as a script says.

A small model makes none by itself, whatever it is offered, and servers take no grammar beside `tools`. So
each request is made twice. The first is the agent's own, `tools` and all, with one token for the reply: its
figures say what the server had kept of the prompt. In the second the model writes the scripted call behind
the same prompt, as the template writes calls, and a grammar allows nothing else. That stands in the cache
when the next request brings it back as `tool_calls`. The agent gets the call as the server's parser would.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from agent.server.loopback import request_json
from benchmarks.forcing_proxy import NO_MORE, Call, ForcingProxy, Handler

_PATIENCE_SECONDS = 600.0
_MOST_TOKENS = 1024
_MARK = re.compile(r"(</?[a-z_]+>)")
_OF_TEMPLATES = ("messages", "tools", "tool_choice", "chat_template_kwargs")
_SHORTEST = {"stream": False, "max_tokens": 1}


class NativeHandler(Handler):
    """Answers chats with the next step of the script; everything else goes to the server."""

    def answer_chat(self, body: dict[str, Any]) -> None:
        proxy = self.server.proxy
        try:
            chunks = list(_played(proxy, body))
        except MismatchError as error:
            self.send_error(400, str(error))
            return
        self._send(chunks)

    def _send(self, chunks: list[Mapping[str, Any]]) -> None:
        lines = [*(json.dumps(chunk) for chunk in chunks), "[DONE]"]
        data = "".join(f"data: {line}\n\n" for line in lines).encode("utf-8")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class MismatchError(Exception):
    """What the server did is not what this measurement stands on."""


def _played(proxy: ForcingProxy, body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The next reply of the script as chunks; the server's figures are in the last. Raises MismatchError."""
    number = len(proxy.requests)
    step = proxy.next_step(body)
    if step is None:
        raise MismatchError(NO_MORE)
    asked = {name: value for name, value in body.items() if name != "stream_options"} | _SHORTEST
    timings = _ask(proxy, "/v1/chat/completions", asked)["timings"]
    prompt = _rendered(proxy, body, [])
    said = _said(step, number)
    text = step if isinstance(step, str) else _as_template_writes(proxy, body, said)
    grammar = f"root ::= {_only(proxy, text)}"
    bound = {"prompt": prompt, "grammar": grammar, "n_predict": _MOST_TOKENS, "temperature": 0}
    written = _ask(proxy, "/completion", bound)
    if written["content"] != text:
        raise MismatchError(f"the model wrote {written['content']!r} instead of {text!r}")
    if written["timings"]["prompt_n"] > 1:
        raise MismatchError("the prompt that the template gives is not that of the chat")
    timings = {**timings, "predicted_n": written["timings"]["predicted_n"]}
    proxy.keep(number, timings)
    yield _chunk(said)
    yield {**_chunk({}, "stop" if isinstance(step, str) else "tool_calls"), "timings": timings}


def _said(step: Call | str, number: int) -> dict[str, Any]:
    """The reply as a message of the conversation."""
    if isinstance(step, str):
        return {"role": "assistant", "content": step}
    name, arguments = step
    function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    calls = [{"id": f"call-{number}", "type": "function", "function": function}]
    return {"role": "assistant", "content": "", "tool_calls": calls}


def _as_template_writes(proxy: ForcingProxy, body: Mapping[str, Any], said: Mapping[str, Any]) -> str:
    """The text of a call, up to where the model ends its turn. Raises MismatchError.

    It is looked up behind the first message of the person's: some templates write the result of a call in
    another way once something follows it.
    """
    first = next(at for at, message in enumerate(body["messages"]) if message["role"] == "user")
    begun = {**body, "messages": body["messages"][: first + 1]}
    result = {"role": "tool", "tool_call_id": said["tool_calls"][0]["id"], "content": "result"}
    prompt, later = _rendered(proxy, begun, []), _rendered(proxy, begun, [said, result])
    text, found, _ = later.removeprefix(prompt).partition(_get(proxy, "/props")["eos_token"])
    if not later.startswith(prompt) or not found or not text.strip():
        raise MismatchError("the template of this server does not write calls behind the prompt")
    return text


def _only(proxy: ForcingProxy, text: str) -> str:
    """A rule of a grammar that nothing but `text` follows.

    A mark that is one token of the vocabulary is written as that: a model that was trained with it does so,
    while another one spells it out. How the rest is cut into tokens is left to the model.
    """
    parts = []
    for piece in filter(None, _MARK.split(text)):
        marked = _MARK.fullmatch(piece)
        tokens = (
            _ask(proxy, "/tokenize", {"content": piece, "parse_special": True})["tokens"] if marked else []
        )
        parts.append(f"<[{tokens[0]}]>" if len(tokens) == 1 else json.dumps(piece))
    return " ".join(parts)


def _tokens(proxy: ForcingProxy, text: str) -> list[int]:
    return _ask(proxy, "/tokenize", {"content": text, "parse_special": True})["tokens"]


def _rendered(proxy: ForcingProxy, body: Mapping[str, Any], more: list[Mapping[str, Any]]) -> str:
    fields = {name: body[name] for name in _OF_TEMPLATES if name in body}
    return _ask(proxy, "/apply-template", {**fields, "messages": [*body["messages"], *more]})["prompt"]


def _ask(proxy: ForcingProxy, path: str, body: Mapping[str, Any]) -> Any:
    return _answer(proxy, "POST", path, body)


def _get(proxy: ForcingProxy, path: str) -> Any:
    return _answer(proxy, "GET", path, None)


def _answer(proxy: ForcingProxy, method: str, path: str, body: Any) -> Any:
    status, answer = request_json(
        proxy.upstream_port, method, path, proxy.api_key, body, timeout=_PATIENCE_SECONDS
    )
    if status != 200:
        raise MismatchError(f"{path}: {answer}")
    return answer


def _chunk(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
    calls = delta.get("tool_calls")
    numbered = {"tool_calls": [{"index": at, **call} for at, call in enumerate(calls)]} if calls else {}
    return {"choices": [{"index": 0, "delta": {**delta, **numbered}, "finish_reason": finish}]}
