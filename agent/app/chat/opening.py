"""What the first message of a conversation begins with, before what the person said."""

from dataclasses import replace

from agent.app.chat.engine import Engine
from agent.app.chat.live import LiveSession
from agent.core.inbox import Said
from agent.core.messages import UserMessage


async def opened(live: LiveSession, engine: Engine, said: Said) -> Said:
    """`said` with the project's instructions in front, where it is the first thing in its conversation.

    In one that goes on, the instructions are there already; what the hooks of the start say becomes a note.
    """
    if any(isinstance(message, UserMessage) for message in live.record.conversation.messages):
        note = await live.extensions.at_start()
        if note:
            live.inbox.note(note)
        return said
    opening = await live.extensions.opening(said.text, context_tokens=engine.model.context_tokens)
    return replace(said, told=f"{opening}\n\n{said.told}") if opening else said
