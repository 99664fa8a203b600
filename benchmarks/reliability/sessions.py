"""Session files as a crash, a power cut or a bad disk leaves them. The oracle knows which lines are intact.

Each case is a file of random records with damage to some of its lines. Every intact record has to be read, in
its order, byte for byte, nothing else may come up that was not written, and the session has to go on: what is
appended after the damage is read back too, and the conversation in it makes a valid request.
"""

import json
import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from agent.core.messages import AssistantMessage, Message, ToolMessage
from agent.session.lines import LineAppender
from agent.session.replay import events_in
from agent.session.store import EVENTS_NAME, SessionStore, load
from agent.session.transcript import messages_in, with_results

_TEXTS = (
    "",
    "plain",
    "\u2028 \u2029 \x85",
    "äöü配置😀",
    '"quotes" \\ \n\r\t',
    "\x00\x1b[31m",
    "x" * 3000,
    "}{][",
)
_DAMAGE = (
    "torn end",
    "nul tail",
    "nul run",
    "cut line",
    "bit",
    "garbage line",
    "two torn",
    "glued",
    "empty",
    "none",
)


def records(chance: random.Random) -> list[dict[str, Any]]:
    """The records of a session with messages, calls, events, and some that nobody knows."""
    made: list[dict[str, Any]] = [{"type": "session", "format": 2, "kind": "chat", "id": "x"}]
    for number in range(chance.randrange(1, 12)):
        text = chance.choice(_TEXTS)
        kind = chance.randrange(6)
        if kind == 0:
            made.append({"type": "message", "role": "user", "text": text})
        elif kind == 1:
            call = {"id": f"call-{number}-1", "name": "read", "arguments": {"path": text}}
            calls = [{**call, "raw": json.dumps({"path": text}), "in_text": False}]
            made.append(
                {"type": "message", "role": "assistant", "text": text, "reasoning": "", "calls": calls}
            )
            made.append(
                {
                    "type": "message",
                    "role": "tool",
                    "call_id": f"call-{number}-1",
                    "tool": "read",
                    "text": text,
                    "is_error": False,
                }
            )
        elif kind == 2:
            made.append({"type": "user_message", "text": text})
        elif kind == 3:
            made.append({"type": "assistant_message", "text": text, "reasoning": text})
        elif kind == 4:
            made.append({"type": f"unheard of {number}", "deep": [[text] * 3, {text: None}]})
        else:
            made.append({"type": "notice", "text": text, "level": "info"})
    return made


def damaged(lines: list[bytes], kind: str, chance: random.Random) -> tuple[bytes, list[int]]:
    """The bytes of the file, and the numbers of the lines that are still whole."""
    whole = list(range(len(lines)))
    at = chance.randrange(len(lines))
    data = [line + b"\n" for line in lines]
    if kind in ("torn end", "nul tail", "two torn"):
        cut = chance.randrange(len(data[-1]))
        tail = b"\0" * chance.randrange(1, 5000) if kind == "nul tail" else b""
        again = data[-1][: chance.randrange(len(data[-1]))] if kind == "two torn" else b""
        joined = b"".join(data[:-1]) + data[-1][:cut] + tail + (b"\n" + again if again else b"")
        # A line without its end is still a whole record.
        kept = whole if cut == len(data[-1]) - 1 else whole[:-1]
        extra = [len(lines) - 1] if again == data[-1][:-1] and again and kept != whole else []
        return joined, kept + extra
    if kind == "nul run":  # a block of the file that never reached the disk
        data[at] = b"\0" * len(data[at])
    elif kind == "cut line":
        data[at] = data[at][: max(1, chance.randrange(1, len(data[at]) - 1))] + b"\n"
    elif kind == "bit":
        where = chance.randrange(len(data[at]) - 1)
        changed = bytearray(data[at])
        changed[where] ^= 1 << chance.randrange(8)
        data[at] = bytes(changed)
        return b"".join(data), [number for number in whole if number != at]
    elif kind == "garbage line":
        noise = bytes(chance.randrange(256) for _ in range(200)).replace(b"\n", b"").replace(b"{", b"")
        data.insert(at, noise + b"\n")
        return b"".join(data), whole
    elif kind == "glued":
        data[at] = data[at][:-1]  # its end and the next line's beginning in one
        return b"".join(data), [number for number in whole if number not in (at, at + 1)] if at < len(
            lines
        ) - 1 else whole
    elif kind == "empty":
        data.insert(at, b"\n \n\r\n")
        return b"".join(data), whole
    else:
        return b"".join(data), whole
    return b"".join(data), [number for number in whole if number != at]


def fault(folder: Path, chance: random.Random) -> tuple[str, str]:
    """Does one case; the kind of damage, and what is wrong with how it was read (empty: nothing)."""
    written = records(chance)
    path = folder / EVENTS_NAME
    path.unlink(missing_ok=True)
    appender = LineAppender(path)
    for record in written:
        appender.append(record)
    appender.close()
    lines = path.read_bytes().split(b"\n")[:-1]
    kind = chance.choice(_DAMAGE)
    data, whole = damaged(lines, kind, chance)
    path.write_bytes(data)
    read = load(path)
    wanted = [written[number] for number in whole]
    if not is_within(wanted, read):
        return kind, "an intact record was lost"
    if kind != "bit" and len(read) > len(wanted):
        return kind, "a record came up that was not written"
    with SessionStore.reopen(folder) as store:
        store.append({"type": "message", "role": "user", "text": "and on"})
    after = load(path)
    if after != [*read, {"type": "message", "role": "user", "text": "and on"}]:
        return kind, "what was appended after the damage is not read back as it is"
    list(events_in(after))
    return kind, _unanswered(with_results(messages_in(after)))


def is_within(wanted: list[dict[str, Any]], read: list[dict[str, Any]]) -> bool:
    """Whether `wanted` are in `read` in this order."""
    rest = iter(read)
    return all(any(record == one for one in rest) for record in wanted)


def _unanswered(messages: list[Message]) -> str:
    """A call without a result, which no server takes."""
    open_calls: set[str] = set()
    for message in messages:
        if isinstance(message, ToolMessage):
            open_calls.discard(message.call_id)
        elif open_calls:
            return "a call has no result"
        elif isinstance(message, AssistantMessage):
            open_calls = {call.id for call in message.tool_calls}
    return "a call has no result" if open_calls else ""


def run(count: int, seed: int) -> dict[str, Any]:
    """Reads `count` damaged files. `failures` has to be 0."""
    chance = random.Random(seed)
    kinds: Counter[str] = Counter()
    failures: list[str] = []
    with tempfile.TemporaryDirectory(prefix="agent-sessions-") as folder:
        for number in range(count):
            try:
                kind, problem = fault(Path(folder), chance)
            except Exception as error:  # any at all is a finding
                kind, problem = "?", f"{type(error).__name__}: {error}"
            kinds[kind] += 1
            if problem:
                failures.append(f"case {number} ({kind}): {problem}")
    return {
        "files": count,
        "damage": dict(sorted(kinds.items())),
        "failures": len(failures),
        "first_failures": failures[:10],
    }
