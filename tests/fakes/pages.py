"""The answers of the scripted server that need no script."""

from collections.abc import Callable, Mapping
from typing import Any

from tests.fakes import chat
from tests.fakes.state import ServerSettings


def _promised(settings: ServerSettings) -> int:
    return settings.promised_n_ctx or settings.n_ctx


def _props(settings: ServerSettings) -> dict[str, Any]:
    return {
        "default_generation_settings": {"params": {}, "n_ctx": _promised(settings)},
        "total_slots": settings.total_slots,
        "model_alias": settings.model,
        "model_path": f"/models/{settings.model}.gguf",
        "modalities": {"vision": settings.vision, "video": False, "audio": False},
        "chat_template": "{% for message in messages %}{{ message.content }}{% endfor %}",
        "chat_template_caps": dict(settings.caps),
        "build_info": chat.BUILD,
        "is_sleeping": False,
    }


def _models(settings: ServerSettings) -> dict[str, Any]:
    meta = {"n_ctx": _promised(settings), "n_ctx_train": _promised(settings)}
    return {"object": "list", "data": [{"id": settings.model, "owned_by": "llamacpp", "meta": meta}]}


def _slots(settings: ServerSettings) -> list[dict[str, Any]]:
    idle = {"n_ctx": _promised(settings), "speculative": False, "is_processing": False}
    return [{"id": number} | idle for number in range(settings.total_slots)]


PAGES: dict[str, Callable[[ServerSettings], Any]] = {
    "/props": _props,
    "/slots": _slots,
    "/v1/models": _models,
    "/models": _models,
}


def _count(body: Mapping[str, Any]) -> dict[str, Any]:
    return {"object": "response.input_tokens", "input_tokens": len(chat.tokenize(chat.render_prompt(body)))}


QUESTIONS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "/tokenize": lambda body: {"tokens": [chat.token_id(piece) for piece in chat.tokenize(body["content"])]},
    "/apply-template": lambda body: {"prompt": chat.render_prompt(body)},
    "/v1/chat/completions/input_tokens": _count,
    "/completion": lambda _: {"content": "x", "timings": {}},
}


def whole_reply(model: str, reply: chat.Reply, figures: chat.Figures, number: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": f"call{number:014d}{index:014d}",
                "type": "function",
                "function": {"name": call.name, "arguments": call.raw_arguments},
            }
            for index, call in enumerate(reply.calls)
        ]
    return {
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish_reason}],
        "created": 0,
        "id": f"chatcmpl-{number}",
        "model": model,
        "object": "chat.completion",
        "usage": figures.usage,
        "timings": figures.timings,
    }
