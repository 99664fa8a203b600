"""What is different about servers that are not llama-server: how they are asked, what people should know."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent.core.errors import UsageError
from agent.llm.client import Connection
from agent.llm.metrics import MetricsKind
from agent.server.profile import Profile
from agent.server.record import Endpoint

_METRICS: dict[str, MetricsKind] = {"vllm": "vllm", "sglang": "sglang"}
# `chat_template_kwargs` in the body: in the documents of vLLM, of SGLang and of llama-server.
_TELL_TEMPLATES = ("llama-server", "vllm", "sglang")
_REASONING_ARGUMENTS = frozenset({"enable_thinking", "reasoning_effort", "thinking"})
# Nobody has said that they refuse llama-server's fields; a server that does is asked again without.
_MAY_KNOW_LLAMA_FIELDS = ("llama-server", "unknown")
_TELL_THE_WINDOW = (
    "say so with AGENT_SERVER_CONTEXT=32768, server.context, or context in a profile of your own"
)


def require_window(endpoint: Endpoint) -> None:
    """No conversation begins where nobody knows how much of it the model gets to see.

    Raises:
        UsageError: neither the server nor the settings nor the profile say so.
    """
    if endpoint.context_tokens:
        return
    ollama = endpoint.engine == "ollama"
    raise UsageError(
        f"the server at {endpoint.base_url} does not say how much context the model gets"
        + (", and Ollama cuts longer prompts without a word" if ollama else ""),
        f"{'set OLLAMA_CONTEXT_LENGTH for it, and ' if ollama else ''}{_TELL_THE_WINDOW}",
    )


def speaks_llama(endpoint: Endpoint) -> bool:
    """Whether the server binds replies to grammars, which is llama.cpp's own addition to the API."""
    return endpoint.engine == "llama-server"


def connection_to(endpoint: Endpoint, profile: Profile) -> Connection:
    """How the model behind the endpoint is asked."""
    return Connection(
        base_url=endpoint.base_url,
        api_key=endpoint.api_key,
        model=endpoint.model or "local",
        llama_fields=endpoint.engine in _MAY_KNOW_LLAMA_FIELDS,
        grammars=speaks_llama(endpoint),
        metrics=_METRICS.get(endpoint.engine),
        template_arguments=template_arguments(endpoint, profile),
    )


def template_arguments(endpoint: Endpoint, profile: Profile) -> Mapping[str, Any]:
    """What the chat template of a server that runs elsewhere has to be told with each request.

    A server that was started here was told when it was started. The names are those of the templates of
    Qwen, GLM and Gemma; a template that does not know one passes over it.
    """
    if endpoint.fingerprint is not None or endpoint.engine not in _TELL_TEMPLATES:
        return {}
    told: dict[str, Any] = {}
    if profile.preserve_reasoning is not None:
        told["preserve_thinking"] = profile.preserve_reasoning
        told["clear_thinking"] = not profile.preserve_reasoning  # the same in the words of GLM
    if profile.reasoning in ("on", "off") and not profile.template_arguments.keys() & _REASONING_ARGUMENTS:
        told["enable_thinking"] = profile.reasoning == "on"
    return {**told, **profile.template_arguments}


def remarks(endpoint: Endpoint, profile: Profile, protocol: str) -> Sequence[str]:
    """What people should know of an engine before they rely on it, one line each."""
    found = []
    if endpoint.fingerprint is None and "context" in profile.model_fields_set:
        given, wanted = endpoint.context_tokens, profile.context
        if given < wanted:
            found.append(f"the server gives {given} tokens of context, not the {wanted} of the profile")
    if profile.model_card.guided and protocol == "constrained" and not speaks_llama(endpoint):
        found.append("only llama-server takes grammars, so files are written as part of a call here")
    return found
