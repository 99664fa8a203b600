"""Damaged streams of a server through the client, over a real connection.

Whatever comes, each request has to end in exactly one reply: with a message whose calls can be repeated to
a server, or with an error of one line. After each damaged stream the same client asks again and gets an
undamaged one, which has to arrive as it was sent: nothing of the damage stays.
"""

import asyncio
import json
import random
from collections import Counter
from typing import Any

from agent.core.messages import AssistantMessage
from agent.core.model import Reply
from tests.llm.rig import Client

_SECONDS = 30
_DAMAGE = (
    "cut", "reset", "nul", "bit", "bytes", "json", "types", "order", "twice", "no end", "endless line",
    "html", "nothing", "error inside", "separators", "indices", "none",
)  # fmt: skip


_ODD_JSON = (b"{", b"[]", b"null", b"{}", b'"x"', b"{'a':1}", b"1e999")
_ODD_TYPES: tuple[dict[str, Any], ...] = (
    {"choices": None},
    {"choices": [{}]},
    {"choices": [{"index": 0, "delta": None}]},
    {"choices": [{"index": 0, "delta": {"content": 5}}]},
    {"choices": [{"index": 0, "delta": {"tool_calls": {}}}]},
    {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": "x", "function": None}]}}]},
    {"choices": [{"index": 0, "delta": {"tool_calls": [{}]}}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": 7}]},
)


def chunks(text: str = "Hello.", arguments: str = '{"path":"a.py"}') -> list[bytes]:
    """The events of an undamaged stream with text and a call."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": None}]
    deltas += [{"content": piece} for piece in (text[:3], text[3:])]
    call = {"index": 0, "id": "abc", "type": "function", "function": {"name": "read", "arguments": ""}}
    deltas.append({"tool_calls": [call]})
    deltas += [
        {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}
        for piece in (arguments[:6], arguments[6:])
    ]
    events = [_event(delta, None) for delta in deltas] + [_event({}, "tool_calls")]
    return [b"data: " + json.dumps(event).encode() + b"\n\n" for event in events] + [b"data: [DONE]\n\n"]


def _event(delta: dict[str, Any], reason: str | None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {"id": "one", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def damaged(kind: str, chance: random.Random) -> bytes:
    """A stream with one kind of damage."""
    whole = b"".join(chunks())
    where = chance.randrange(len(whole))
    noise = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 60)))
    by_bytes = {
        "cut": lambda: whole[:where],
        "reset": lambda: whole[:where],
        "nul": lambda: whole[:where] + b"\0" * chance.randrange(1, 2000) + whole[where:],
        "bit": lambda: (
            whole[:where] + bytes([whole[where] ^ (1 << chance.randrange(8))]) + whole[where + 1 :]
        ),
        "bytes": lambda: whole[:where] + noise + whole[where + chance.randrange(20) :],
        "html": lambda: b"<html><body>502 Bad Gateway</body></html>",
        "nothing": lambda: b"",
    }
    return by_bytes[kind]() if kind in by_bytes else b"".join(_damaged_events(kind, chance))


def _damaged_events(kind: str, chance: random.Random) -> list[bytes]:
    parts = chunks()
    at = chance.randrange(len(parts))
    if kind == "order":
        chance.shuffle(parts)
    elif kind == "twice":
        parts.insert(at, parts[at])
    elif kind == "no end":
        parts = parts[:-2]
    elif kind == "separators":
        parts = [part.replace(b"Hel", "\u2028\x85".encode()) for part in parts]
        parts = [part.replace(b"\n\n", b"\r\n\r\n") for part in parts]
    elif kind != "none":
        instead = {
            "json": b"data: " + chance.choice(_ODD_JSON) + b"\n\n",
            "types": b"data: " + json.dumps(chance.choice(_ODD_TYPES)).encode() + b"\n\n",
            "endless line": b"data: " + b"x" * 300_000,
            "error inside": b'data: {"error": {"message": "the slot is gone", "code": 500}}\n\n',
            "indices": parts[min(at, len(parts) - 2)].replace(b'"index": 0', b'"index": 9999', 2),
        }
        parts[at] = instead[kind]
    return parts


class Server:
    """Answers each request with the bytes in `body`; `reset` breaks the connection off at their end."""

    def __init__(self) -> None:
        self.body = b""
        self.reset = False

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                (
                    int(line.split(b":")[1])
                    for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-length")
                ),
                0,
            )
            await reader.readexactly(length)
            kind = b"text/event-stream" if b"/chat/completions" in head else b"application/json"
            body = self.body if b"/chat/completions" in head else b"{}"
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: " + kind + b"\r\nConnection: close\r\n\r\n" + body
            )
            await writer.drain()
            if self.reset:
                writer.transport.abort()
        except (OSError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()


async def fault(client: Client, server: Server, kind: str, chance: random.Random) -> str:
    """What is wrong with how a damaged stream ended, or with the one after it; empty if nothing is."""
    server.body, server.reset = damaged(kind, chance), kind == "reset"
    problem = _judged(await asyncio.wait_for(client.items(), _SECONDS))
    if problem:
        return problem
    server.body, server.reset = b"".join(chunks("Fine.")), False
    reply = await asyncio.wait_for(client.ask(), _SECONDS)
    calls = [(call.name, dict(call.arguments)) for call in reply.message.tool_calls]
    if reply.error or reply.message.text != "Fine." or calls != [("read", {"path": "a.py"})]:
        return f"the stream after it came out as {reply.message.text!r}, {calls}, {reply.error!r}"
    return ""


def _judged(items: list[Any]) -> str:
    reply = items[-1]
    if not isinstance(reply, Reply):
        return "no reply"
    if reply.error:
        return "an error of several lines" if "\n" in reply.error else ""
    if not isinstance(reply.message, AssistantMessage):
        return "a reply without a message"
    for call in reply.message.tool_calls:
        if not reply.problem:
            json.loads(json.dumps(dict(call.arguments)))
            if not isinstance(json.loads(call.raw_arguments), dict):
                return f"a call with arguments that are no object: {call.raw_arguments[:80]}"
    reply.message.text.encode("utf-8")
    return ""


def run(count: int, seed: int) -> dict[str, Any]:
    """Sends `count` damaged streams, each followed by an undamaged one. `failures` has to be 0."""
    return asyncio.run(_run(count, seed))


async def _run(count: int, seed: int) -> dict[str, Any]:
    chance = random.Random(seed)
    kinds: Counter[str] = Counter()
    failures: list[str] = []
    server = Server()
    listener = await asyncio.start_server(server, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    client = Client(f"http://127.0.0.1:{port}/v1")
    async with listener:
        for number in range(count):
            kind = chance.choice(_DAMAGE)
            kinds[kind] += 1
            try:
                problem = await fault(client, server, kind, chance)
            except Exception as error:  # any at all is a finding
                problem = f"{type(error).__name__}: {error}"
            if problem:
                failures.append(f"case {number} ({kind}): {problem}")
        await client.model.close()
    return {
        "streams": count,
        "damage": dict(sorted(kinds.items())),
        "failures": len(failures),
        "first_failures": failures[:10],
    }
