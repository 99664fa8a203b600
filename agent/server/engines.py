"""Which program serves at an address: llama-server, vLLM, SGLang, LM Studio, Ollama, or something like them.

They all speak OpenAI's chat API; what tells them apart are the endpoints of their own and who owns their
models in `/v1/models`. Nothing here generates a token or makes a server load a model.
"""

import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from agent.core.errors import ServerError
from agent.server.asking import PATIENCE_SECONDS, ask
from agent.server.probe import offer_in

EngineName = Literal["llama-server", "vllm", "sglang", "lm-studio", "ollama", "unknown"]
ENGINE_TITLES: Mapping[EngineName, str] = {
    "llama-server": "llama-server",
    "vllm": "vLLM",
    "sglang": "SGLang",
    "lm-studio": "LM Studio",
    "ollama": "Ollama",
    "unknown": "a server with OpenAI's API",
}
USUAL_PORTS = (8080, 9931, 8910, 1234, 11434, 8000, 30000)
"""llama-server, the one that it announced in 2026 for later, that of the shipped profiles, LM Studio, Ollama,
vLLM, SGLang."""

# `owned_by` in /v1/models.
_OWNERS: Mapping[str, EngineName] = {
    "vllm": "vllm",
    "sglang": "sglang",
    "llamacpp": "llama-server",
    "organization_owner": "lm-studio",
    "library": "ollama",
}
_CONNECT_SECONDS = 0.3
_LOOK_SECONDS = 2.0
_NUM_CTX = re.compile(r"^num_ctx\s+(\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ServedModel:
    """`id` is what requests have to name, `root` the file or repository behind it where the engine says so.

    `context_tokens` is 0 where the engine does not say. `is_loaded` is None where it always is.
    """

    id: str
    root: str = ""
    context_tokens: int = 0
    is_loaded: bool | None = None
    tool_calls: bool | None = None

    def goes_by(self, name: str) -> bool:
        return name in (self.id, self.root) or self.id == f"{name}:latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFacts:
    """What a server says about itself.

    `model` is the one that is meant when nobody chooses: the only one, or the only one that is loaded.
    `slots` is how many conversations it serves at once, as far as it says so. `drafting` is its own word for
    the way in which it drafts, empty where it does not say.
    """

    base_url: str
    engine: EngineName = "unknown"
    version: str = ""
    models: tuple[ServedModel, ...] = ()
    model: ServedModel | None = None
    slots: int = 1
    drafting: str = ""
    needs_key: bool = False
    is_loading: bool = False
    is_router: bool = False

    @property
    def title(self) -> str:
        """The engine's name for people, with its version."""
        return f"{ENGINE_TITLES[self.engine]} {self.version}".strip()

    @property
    def context_tokens(self) -> int:
        return self.model.context_tokens if self.model else 0

    def served(self, name: str) -> ServedModel | None:
        """The model that goes by that name."""
        return next((model for model in self.models if model.goes_by(name)), None)


def identify(
    base_url: str, api_key: str = "", *, model: str = "", timeout: float = PATIENCE_SECONDS
) -> EngineFacts:
    """Finds out what serves at `base_url` (without `/v1`). `model` is the one of interest, if there is one.

    Raises:
        ServerError: nothing answers there.
    """
    server = _Server(base_url, api_key, timeout)
    status, props = server.get("/props")
    if status == 503:
        return EngineFacts(base_url=base_url, engine="llama-server", is_loading=True)
    if status == 200 and isinstance(props, dict) and (props.get("role") == "router" or offer_in(props)):
        return _llama_server(base_url, props)
    facts = _of_model_list(server, model)
    if status in (401, 403):
        # llama-server answers /health without a key (its README), with these words.
        is_llama = facts.engine == "unknown" and server.record("/health").get("status") == "ok"
        return replace(facts, needs_key=True, engine="llama-server" if is_llama else facts.engine)
    engine = facts.engine if facts.engine != "unknown" else _by_endpoints(server)
    facts = replace(facts, engine=engine)
    read = {"vllm": _vllm, "sglang": _sglang, "lm-studio": _lm_studio, "ollama": _ollama}.get(engine)
    return read(server, facts, model) if read else facts


def running_servers(
    ports: Sequence[int] = USUAL_PORTS, *, timeout: float = _LOOK_SECONDS
) -> list[EngineFacts]:
    """The model servers on this machine at `ports`, looked at together. What is no such server is left out.

    Args:
        timeout: seconds for each answer; an open port that stays silent takes as long.
    """
    if not ports:
        return []
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=len(ports), thread_name_prefix="look") as pool:
        found = pool.map(lambda port: _at_port(port, timeout), ports)
        return [facts for facts in found if facts is not None]


def _at_port(port: int, timeout: float) -> EngineFacts | None:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=_CONNECT_SECONDS):
            pass
        facts = identify(f"http://127.0.0.1:{port}", timeout=timeout)
    except (OSError, ServerError):
        return None
    return facts if facts.engine != "unknown" or facts.models else None


@dataclass(frozen=True, slots=True)
class _Server:
    base_url: str
    api_key: str
    timeout: float

    def get(self, path: str) -> tuple[int, Any]:
        return ask(self.base_url, path, self.api_key, timeout=self.timeout)

    def record(self, path: str, body: Any = None) -> Mapping[str, Any]:
        """The JSON object there; empty where there is none. LM Studio answers 200 to whatever is asked."""
        status, answer = ask(self.base_url, path, self.api_key, body=body, timeout=self.timeout)
        return answer if status == 200 and isinstance(answer, dict) else {}


def _llama_server(base_url: str, props: Mapping[str, Any]) -> EngineFacts:
    offer = offer_in(props)
    path = _text(props.get("model_path"))
    name = _text(props.get("model_alias")) or path.replace("\\", "/").rpartition("/")[2]
    model = ServedModel(name, path, offer.context_tokens if offer else 0, None, offer and offer.tool_calls)
    return EngineFacts(
        base_url=base_url,
        engine="llama-server",
        version=_text(props.get("build_info")),
        models=(model,) if name else (),
        model=model,
        slots=offer.slots if offer else 1,
        is_router=props.get("role") == "router",
    )


def _of_model_list(server: _Server, wanted: str) -> EngineFacts:
    """What `/v1/models` says: whose they are, and with vLLM and SGLang how much context they have."""
    status, answer = server.get("/v1/models")
    entries = [entry for entry in _records(answer, "data") if _text(entry.get("id"))]
    models = tuple(
        ServedModel(entry["id"], _text(entry.get("root")), _count(entry.get("max_model_len")))
        for entry in entries
    )
    owners: set[EngineName] = {_OWNERS.get(_text(entry.get("owned_by")), "unknown") for entry in entries}
    return EngineFacts(
        base_url=server.base_url,
        engine=owners.pop() if len(owners) == 1 else "unknown",
        models=models,
        model=_meant(models, wanted),
        needs_key=status in (401, 403),
    )


def _by_endpoints(server: _Server) -> EngineName:
    """The engine by what it answers beside OpenAI's API; Ollama's models may belong to anybody."""
    if any(_text(entry.get("id")) for entry in _records(server.record("/api/v0/models"), "data")):
        return "lm-studio"
    if _text(server.record("/api/version").get("version")):
        return "ollama"
    if _text(server.record("/get_model_info").get("model_path")):
        return "sglang"
    return "vllm" if _text(server.record("/version").get("version")) else "unknown"


def _vllm(server: _Server, facts: EngineFacts, _: str) -> EngineFacts:
    return replace(facts, version=_text(server.record("/version").get("version")))


def _sglang(server: _Server, facts: EngineFacts, wanted: str) -> EngineFacts:
    """`/server_info`, which was `/get_server_info` until 2025; it holds the arguments of the server."""
    info = server.record("/server_info") or server.record("/get_server_info")
    context = _count(info.get("context_length"))
    models = tuple(replace(one, context_tokens=one.context_tokens or context) for one in facts.models)
    return replace(
        facts,
        version=_text(info.get("version")),
        models=models,
        model=_meant(models, wanted),
        slots=_count(info.get("max_running_requests")) or facts.slots,
        drafting=_text(info.get("speculative_algorithm")),
    )


def _lm_studio(server: _Server, facts: EngineFacts, wanted: str) -> EngineFacts:
    """`/api/v0/models` knows what is loaded, and with how much context (LM Studio since 0.3.6)."""
    entries = [
        entry
        for entry in _records(server.record("/api/v0/models"), "data")
        if _text(entry.get("id")) and entry.get("type") in ("llm", "vlm")
    ]
    if not entries:
        return facts
    models = tuple(
        ServedModel(
            entry["id"],
            context_tokens=_count(entry.get("loaded_context_length")),
            is_loaded=entry.get("state") == "loaded",
        )
        for entry in entries
    )
    return replace(facts, models=models, model=_meant(models, wanted))


def _ollama(server: _Server, facts: EngineFacts, wanted: str) -> EngineFacts:
    """`/api/ps` knows what is loaded, `/api/show` what a model can do and what its own file asks for."""
    loaded = {
        _text(entry.get("name")): _count(entry.get("context_length"))
        for entry in _records(server.record("/api/ps"), "models")
    }
    models = tuple(
        replace(one, is_loaded=one.id in loaded, context_tokens=loaded.get(one.id, 0)) for one in facts.models
    )
    model = _meant(models, wanted)
    if model is not None:
        shown = server.record("/api/show", {"model": model.id})
        lines = shown.get("parameters")
        asked_for = _NUM_CTX.search(lines) if isinstance(lines, str) else None
        able = shown.get("capabilities")
        model = replace(
            model,
            context_tokens=model.context_tokens or (int(asked_for[1]) if asked_for else 0),
            tool_calls="tools" in able if isinstance(able, list) else None,
        )
    return replace(
        facts, version=_text(server.record("/api/version").get("version")), models=models, model=model
    )


def _meant(models: Sequence[ServedModel], wanted: str) -> ServedModel | None:
    """The wanted one; without a wish the only one that is loaded, or the only one there is."""
    if wanted:
        return next((model for model in models if model.goes_by(wanted)), None)
    loaded = [model for model in models if model.is_loaded is not False]
    candidates = loaded or models
    return candidates[0] if len(candidates) == 1 else None


def _records(answer: Any, key: str) -> list[Mapping[str, Any]]:
    entries = answer.get(key) if isinstance(answer, Mapping) else None
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value.isprintable() else ""


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
