"""Images in results of tools, for a model that can see."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from agent.app.background import in_background
from agent.core.messages import Picture
from agent.server.record import Endpoint


def shown_to(endpoint: Endpoint, session_folder: Path) -> Callable[[Path], Awaitable[Picture | None]]:
    """Makes an image of a tool's result one of the conversation; see `agent.app.chat.pictures.keep_picture`.

    What that needs is loaded with the first image, because few runs have one.
    """

    async def picture(path: Path) -> Picture | None:
        from agent.app.chat.pictures import keep_picture, sees
        from agent.session.forked import PICTURES_NAME

        if not await in_background(lambda: sees(endpoint)):
            return None
        kept = await asyncio.to_thread(keep_picture, path, path.name, session_folder / PICTURES_NAME)
        return kept if isinstance(kept, Picture) else None

    return picture
