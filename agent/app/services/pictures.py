"""Services of a live session about images.

| name | arguments | gives |
|---|---|---|
| `blindness` | `wait` (default false): for the server | why the model sees no images, "" when it does |
| `keep_image` | `content` (bytes) | the file that keeps it, to be mentioned as `@"FILE"` |
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from agent.app.chat.live import LiveSession
from agent.app.chat.pictures import Refused, keep_content
from agent.app.chat.wording import why_blind
from agent.core.cancel import unless_cancelled
from agent.core.errors import UsageError
from agent.session.forked import PICTURES_NAME


@dataclass(frozen=True, slots=True)
class PictureServices:
    """`as_a_turn` is around what a cancel of turns has to end."""

    live: LiveSession
    as_a_turn: Callable[[], AbstractAsyncContextManager[None]]

    async def blindness(self, arguments: Mapping[str, Any]) -> str:
        if arguments.get("wait"):
            async with self.as_a_turn():
                await unless_cancelled(self.live.keeper.ready(), self.live.cancel)
        return await why_blind(self.live)

    async def keep_image(self, arguments: Mapping[str, Any]) -> str:
        content = arguments.get("content")
        if not isinstance(content, bytes):
            raise UsageError("the service keep_image needs the bytes of an image")
        folder = self.live.record.store.folder / PICTURES_NAME
        kept = await asyncio.to_thread(keep_content, content, "image", folder)
        if isinstance(kept, Refused):
            raise UsageError(f"an image of the prompt cannot be used: {kept.why}")
        return kept.file
