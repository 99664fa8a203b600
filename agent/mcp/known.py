"""What is remembered of servers that were connected to, so that a prompt or a menu can name it at once.

One JSON file for each server and configuration, below the state folder. What is in it came from the server
and is trusted no more than the server is.
"""

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agent.core.whole_file import write_whole
from agent.mcp.config import ServerSpec
from agent.mcp.listing import Offer, PromptArgument, RemotePrompt, RemoteResource, RemoteTool

_LARGEST_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class KnownServers:
    """The record in `folder`."""

    folder: Path

    @classmethod
    def of(cls, state: Path) -> "KnownServers":
        """The record below the state folder `state`."""
        return cls(state / "mcp" / "known")

    def tools(self, spec: ServerSpec) -> list[RemoteTool] | None:
        """The tools that were listed last, in the server's order; None where this was never connected to."""
        offer = self.offer(spec)
        return None if offer is None else offer.tools

    def offer(self, spec: ServerSpec) -> Offer | None:
        """All that was listed last; None where this was never connected to."""
        path = self._path(spec)
        try:
            if path.stat().st_size > _LARGEST_BYTES:
                return None
            record = json.loads(path.read_bytes().decode("utf-8"))
            return Offer(
                tools=[_tool(item) for item in record["tools"]],
                prompts=[_prompt(item) for item in record.get("prompts", ())],
                resources=[_resource(item) for item in record.get("resources", ())],
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None

    def remember(
        self,
        spec: ServerSpec,
        tools: Sequence[RemoteTool],
        prompts: Sequence[RemotePrompt] = (),
        resources: Sequence[RemoteResource] = (),
    ) -> None:
        """Keeps what a server offers. That it cannot be written only costs the next session a connect."""
        record: dict[str, Any] = {"version": 1, "server": spec.name, "at": int(time.time())}
        for key, items in (("tools", tools), ("prompts", prompts), ("resources", resources)):
            record[key] = [asdict(item) for item in items]
        with suppress(OSError):
            write_whole(self._path(spec), json.dumps(record))

    def _path(self, spec: ServerSpec) -> Path:
        return self.folder / f"{spec.fingerprint}.json"


def _tool(item: dict[str, Any]) -> RemoteTool:
    name, description = item["name"], item["description"]
    if not isinstance(name, str) or not isinstance(description, str):
        raise TypeError("not a tool")
    return RemoteTool(name, description, item["schema"], item.get("read_only") is True)


def _prompt(item: dict[str, Any]) -> RemotePrompt:
    arguments = tuple(PromptArgument(**argument) for argument in item["arguments"])
    if not isinstance(item["name"], str) or not isinstance(item["description"], str):
        raise TypeError("not a prompt")
    return RemotePrompt(item["name"], item["description"], arguments)


def _resource(item: dict[str, Any]) -> RemoteResource:
    texts = (item["uri"], item["name"], item["description"])
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("not a resource")
    return RemoteResource(*texts, is_template=item["is_template"] is True)
