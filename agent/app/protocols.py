"""Which tool protocol a server of ours is spoken to with: tried once per start, then remembered."""

import json
from pathlib import Path

from agent.app.conversation import Setting, model_for, system_prompt
from agent.llm.probe import makes_calls, protocol_named
from agent.resources import runtime_folder
from agent.server.record import write_private
from tools import built_in_tools

_OTHER = {"native": "constrained", "constrained": "native"}
_NO_CALLS = "the model answered no trial with a tool call; it may not be able to make any"


async def tried_protocol(setting: Setting) -> tuple[str, str]:
    """The protocol that works with the server of `setting`, and one line if it is not the wanted one.

    A server that somebody else runs is not tried: a request that nobody asked for would cost it the
    cache of whoever uses it. Nor is one that was tried before by any run since its start.
    """
    wanted = setting.protocol
    if setting.endpoint.fingerprint is None:
        return wanted, ""
    path = runtime_folder() / f"protocol-{setting.endpoint.fingerprint}.json"
    known = _remembered(path, setting.endpoint.pid, wanted)
    if known is not None:
        return known, ""
    for name in (wanted, _OTHER[wanted]):
        works = await _try(setting, name)
        if works is None:
            return wanted, ""  # the turn will say what is wrong with the server
        if works:
            write_private(path, json.dumps({"pid": setting.endpoint.pid, wanted: name}))
            surprise = f"{wanted} tool calls do not work with this model, so {name} ones are used"
            return name, "" if name == wanted else surprise
    return wanted, _NO_CALLS


async def _try(setting: Setting, name: str) -> bool | None:
    protocol = protocol_named(name, built_in_tools())
    model = model_for(setting, protocol)
    try:
        return await makes_calls(model, protocol, system_prompt())
    finally:
        await model.close()


def _remembered(path: Path, pid: int | None, wanted: str) -> str | None:
    """What a trial with this very process found."""
    try:
        record = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    found = record.get(wanted) if isinstance(record, dict) and record.get("pid") == pid else None
    return found if found in _OTHER else None
