"""How a server keeps prompts, from its profile and its model's header, looked up to explain a loss."""

from collections.abc import Callable
from dataclasses import replace

from agent.app.servers.serving import Serving
from agent.core.errors import AgentError
from agent.core.reuse import Memory, ReuseWatch, ServerMemory
from agent.server.record import Endpoint


def watch_of(serving: Serving, endpoint: Endpoint) -> ReuseWatch:
    """Watches what the server at `endpoint` keeps of a session's prompts."""
    return ReuseWatch(look=looking_at(serving, endpoint))


def looking_at(serving: Serving, endpoint: Endpoint) -> Callable[[], ServerMemory]:
    """Nothing is read before it is asked for; a header takes milliseconds."""
    known = ServerMemory(slots=endpoint.slots)
    if endpoint.fingerprint is None:
        return lambda: known  # its flags and its model are somebody else's
    kept = replace(known, cache_ram_mib=serving.profile.cache_ram_mib)
    return lambda: replace(kept, memory=_memory(serving))


def _memory(serving: Serving) -> Memory:
    from agent.server.gguf import read_model
    from agent.server.model_shape import shape_of

    target = serving.profile.target
    if target is None:
        return ""
    try:
        shape = shape_of(read_model(target.path_in(serving.loaded.settings.models.folder)))
    except (AgentError, OSError):
        return ""
    if shape.recurrent is not None:
        return "recurrent"
    return "window" if shape.windowed and not serving.profile.swa_full else "whole"
