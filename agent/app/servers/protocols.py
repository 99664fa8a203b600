"""Which tool protocol a server of ours is spoken to with: tried once, then remembered for its program."""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from agent.app.background import in_background
from agent.app.turns.conversation import Setting, model_for, system_prompt
from agent.core.whole_file import write_whole
from agent.llm.probe import makes_calls, protocol_named
from agent.resources import runtime_folder
from agent.server.record import Endpoint, read_record, record_file
from tools import built_in_tools

_OTHER = {"native": "constrained", "constrained": "native"}
_NO_CALLS = "the model answered no trial with a tool call; it may not be able to make any"


async def tried_protocol(setting: Setting) -> tuple[str, str]:
    """The protocol that works with the server of `setting`, and one line if it is not the wanted one.

    A server that somebody else runs is not tried: a request that nobody asked for would cost it the
    cache of whoever uses it. Nor is one that was tried before: the same program with the same model and
    settings, which is what the fingerprint stands for, does the same after another start.
    """
    wanted = setting.protocol
    if setting.endpoint.fingerprint is None:
        return wanted, ""
    path = runtime_folder() / f"protocol-{setting.endpoint.fingerprint}.json"
    program = await in_background(lambda: _program_of(setting.endpoint))
    known = _remembered(path, program, wanted)
    if known is not None:
        return known, ""
    for name in (wanted, _OTHER[wanted]):
        works = await _try(setting, name)
        if works is None:
            return wanted, ""  # the turn will say what is wrong with the server
        if works:
            with suppress(OSError):  # it is only tried again next time
                write_whole(path, json.dumps({**program, wanted: name}))
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


def _program_of(endpoint: Endpoint) -> dict[str, str | int]:
    """What runs there; the process itself where nothing else is known of it."""
    record = read_record(record_file(runtime_folder(), endpoint.fingerprint or ""))
    if record is not None and record.pid == endpoint.pid and record.version:
        return {"program": record.binary, "version": record.version}
    return {"pid": endpoint.pid or 0}


def _remembered(path: Path, program: Mapping[str, str | int], wanted: str) -> str | None:
    """What a trial with this program found."""
    try:
        record = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(record, dict) or any(record.get(name) != value for name, value in program.items()):
        return None
    found = record.get(wanted)
    return found if found in _OTHER else None
