"""A server that somebody else runs: is it there, which engine is it, how much context has a conversation."""

from collections.abc import Sequence

from agent.core.errors import ServerError, UsageError
from agent.server.asking import ask
from agent.server.engines import EngineFacts, ServedModel, identify
from agent.server.probe import Offer

_MOST_NAMES = 8


class StillLoadingError(ServerError):
    """The server is there and loads its model; the same question may be asked again in a moment."""

    def __init__(self, base_url: str) -> None:
        super().__init__(f"the server at {base_url} is still loading its model", "try again in a moment")


_NO_KEY_HINT = "it wants one: name the environment variable that holds its key in server.api_key_env"
_ANOTHER_KEY_HINT = (
    "one was sent: correct what is in the variable that server.api_key_env or the profile names"
)


def describe(base_url: str, api_key: str = "", model: str = "") -> Offer:
    """What the server at `base_url` (without `/v1`) offers. `context_tokens` is 0 when it does not say.

    Args:
        model: the served model that is wanted; empty = the only one, or the only one that is loaded.

    Raises:
        StillLoadingError: it is loading its model.
        ServerError: nothing answers there, or it wants another key.
        UsageError: it has several models and none was chosen, or does not have the chosen one.
    """
    health, _ = ask(base_url, "/health", api_key)
    if health == 503:
        raise StillLoadingError(base_url)
    facts = identify(base_url, api_key, model=model)
    if facts.is_loading:
        raise StillLoadingError(base_url)
    if facts.needs_key:
        raise ServerError(
            f"the server at {base_url} does not accept the key (HTTP 401 or 403)",
            _ANOTHER_KEY_HINT if api_key else _NO_KEY_HINT,
        )
    if facts.is_router:
        raise ServerError(
            f"the server at {base_url} is a router without a model of its own",
            "start it with a model, or give the address of one of its servers",
        )
    if health >= 500 and not facts.models:
        raise ServerError(f"the server at {base_url} answers with HTTP {health}", "look into its log")
    if facts.engine == "llama-server":
        served = facts.model
        able = served.tool_calls if served else None
        return Offer(facts.context_tokens, facts.slots, able, names=_names_of(served))
    chosen = _chosen(facts, model)
    return Offer(
        context_tokens=chosen.context_tokens if chosen else 0,
        slots=facts.slots,
        tool_calls=chosen.tool_calls if chosen else None,
        engine=facts.engine,
        model=chosen.id if chosen else model,
        names=_names_of(chosen),
    )


def load_model(base_url: str, api_key: str, engine: str, model: str, seconds: float) -> None:
    """Has a server load a model now and not for the first request, to say then how much context it has.

    Ollama and LM Studio do so; `model` is its id there. Asking Ollama to generate from no prompt loads a
    model and generates nothing (its API documentation); LM Studio is asked for one token.

    Raises:
        ServerError: nothing answers, or not within `seconds`.
    """
    if engine == "ollama":
        ask(base_url, "/api/generate", api_key, body={"model": model, "stream": False}, timeout=seconds)
    elif engine == "lm-studio":
        messages = [{"role": "user", "content": "Hi"}]
        body = {"model": model, "messages": messages, "max_tokens": 1}
        ask(base_url, "/v1/chat/completions", api_key, body=body, timeout=seconds)


def _names_of(model: ServedModel | None) -> tuple[str, ...]:
    """What a model is called: its id, and the last part of the path behind it."""
    return tuple(filter(None, (model.id, model.root.rpartition("/")[2]))) if model else ()


def _chosen(facts: EngineFacts, wanted: str) -> ServedModel | None:
    """The model that requests have to name; None where the server has no list of models."""
    if not facts.models:
        return None
    if facts.model is not None:
        return facts.model
    names = _names(facts.models)
    where = f"the server at {facts.base_url} ({facts.title})"
    if wanted:
        raise UsageError(
            f"{where} does not serve {wanted!r}, only {names}",
            'correct server.model, or model = "..." in the profile',
        )
    raise UsageError(
        f"{where} has several models: {names}",
        f"choose one with AGENT_SERVER_MODEL={facts.models[0].id}, server.model, or model in a profile",
    )


def _names(models: Sequence[ServedModel]) -> str:
    names = [model.id for model in models[:_MOST_NAMES]]
    more = len(models) - len(names)
    return ", ".join(names) + (f" and {more} more" if more > 0 else "")
