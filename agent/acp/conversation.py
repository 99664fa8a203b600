"""One session of an editor: its events go out as updates, its prompts wait for the end of their turn."""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from acp import Client, PromptResponse, RequestError, update_agent_message_text
from acp.helpers import ContentBlock, update_available_commands
from acp.schema import StopReason

from agent.acp import commands
from agent.acp.asking import answer_of, card_for, options_for
from agent.acp.prompt import images_in, prompt_text
from agent.acp.translate import STOP_REASONS, Translator, Update
from agent.core.errors import AgentError, UsageError
from agent.core.events import ApprovalRequest, ApprovalSettled, TurnFinished
from agent.core.handle import Answer, SessionHandle

_INVALID_REQUEST = -32600
_INVALID_PARAMS = -32602
_SERVER_FAILED = -32603
_LAST_WORDS_SECONDS = 2.0
_log = logging.getLogger(__name__)


class EditorSession:
    """Owns a handle until it is closed. Make it inside of a running event loop."""

    def __init__(self, handle: SessionHandle, client: Client) -> None:
        self.handle = handle
        self.id = handle.facts.session_id
        self.workspace = Path(handle.facts.workspace)
        self._client = client
        self._translator = Translator(self.workspace)
        self._pump: asyncio.Task[None] | None = None
        self._questions: dict[str, asyncio.Task[None]] = {}
        self._turn: asyncio.Future[TurnFinished | None] | None = None
        self._busy: asyncio.Task[Any] | None = None
        self._is_cancelled = False

    def start(self) -> None:
        """Begins to tell of events. What is told first comes after the answer that is about to be given."""
        self._pump = asyncio.create_task(self._follow())

    async def replay(self) -> None:
        """Tells the editor the conversation so far."""
        for event in await self.handle.command("history", {}):
            await self._tell(self._translator.past(event))
        await self._tell(self._translator.past_end())

    async def prompt(self, blocks: Sequence[ContentBlock]) -> PromptResponse:
        """One turn, or one command, from its beginning to its end.

        Raises:
            RequestError: another one runs, the server failed, or the prompt has what the model does not take.
            AgentError: the command failed.
        """
        await self._free()
        self._is_cancelled = False
        self._busy = asyncio.current_task()
        try:
            return await self._prompt(await self._text_of(blocks))
        except UsageError:
            raise
        except AgentError:
            if self._is_cancelled:
                return _ended("cancelled")
            raise
        finally:
            self._busy = None

    def cancel(self) -> None:
        """Ends what runs; the prompt that waits for it is answered then."""
        if self._busy is not None:
            self._is_cancelled = True
            self.handle.cancel()

    async def close(self) -> None:
        """Ends everything of this session, and tells the events that this makes."""
        self.cancel()
        await self.handle.close()
        if self._pump is not None:
            # An editor that reads nothing any more is not waited for.
            await asyncio.wait({self._pump}, timeout=_LAST_WORDS_SECONDS)
            self._pump.cancel()
            await asyncio.gather(self._pump, return_exceptions=True)
        for question in self._questions.values():
            question.cancel()

    async def _free(self) -> None:
        """Waits for a turn that is being cancelled: editors send the next prompt right behind that."""
        while self._busy is not None:
            if not self._is_cancelled:
                raise RequestError(_INVALID_REQUEST, "a prompt of this session is still being worked on")
            await asyncio.wait({self._busy})

    async def _text_of(self, blocks: Sequence[ContentBlock]) -> str:
        images = images_in(blocks)
        if not images:
            return prompt_text(blocks, self.workspace)
        why_not = await self.handle.command("blindness", {"wait": True})
        if why_not:
            raise RequestError(_INVALID_PARAMS, f"the prompt has an image, and {why_not}")
        kept = [await self.handle.command("keep_image", {"content": content}) for content in images]
        return prompt_text(blocks, self.workspace, kept)

    async def _prompt(self, text: str) -> PromptResponse:
        typed = commands.parse(text)
        if typed is None:
            return await self._talk(text)
        name, argument = typed
        command = commands.find(name)
        try:
            if command is None:
                return await self._talk(await commands.prompt_for(self.handle, name, argument))
            shown = await command.run(self.handle, argument)
        except UsageError as error:
            # Whoever typed it is told in the conversation; to the editor nothing is wrong.
            shown = f"{error.message}{f' ({error.hint})' if error.hint else ''}"
        await self._tell([update_agent_message_text(shown)])
        return _ended("cancelled" if self._is_cancelled else "end_turn")

    async def _talk(self, text: str) -> PromptResponse:
        if self._is_cancelled:
            return _ended("cancelled")
        self._turn = asyncio.get_running_loop().create_future()
        # What an earlier turn could not deliver, the editor has sent again or not at all.
        self.handle.take_back_queued()
        self.handle.prompt(text)
        finished = await self._turn
        self.handle.take_back_queued()
        if finished is None or finished.reason == "cancelled":
            return _ended("cancelled")
        if finished.reason == "server_failed":
            raise RequestError(_SERVER_FAILED, self._translator.last_error or finished.detail)
        return _response(finished)

    async def _follow(self) -> None:
        try:
            await self._tell_commands()
            async for event in self.handle.events():
                await self._tell(self._translator.live(event))
                if isinstance(event, ApprovalRequest):
                    self._questions[event.request_id] = asyncio.create_task(self._ask(event))
                elif isinstance(event, ApprovalSettled):
                    question = self._questions.pop(event.request_id, None)
                    if question is not None:
                        question.cancel()
                elif isinstance(event, TurnFinished):
                    self._finish(event)
        finally:
            self._finish(None)

    def _finish(self, finished: TurnFinished | None) -> None:
        if self._turn is not None and not self._turn.done():
            self._turn.set_result(finished)

    async def _ask(self, request: ApprovalRequest) -> None:
        card = card_for(request, request.call_id or request.request_id, self.workspace)
        try:
            response = await self._client.request_permission(
                session_id=self.id, tool_call=card, options=options_for(request)
            )
            answer = answer_of(response, request)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # whatever an editor answers, a call waits for it
            _log.warning("the editor did not answer a question for permission: %s", error)
            answer = Answer(kind="deny", reason="the editor could not ask the user")
        self.handle.answer(request.request_id, answer)

    async def _tell_commands(self) -> None:
        try:
            known = await commands.available(self.handle)
        except AgentError as error:
            _log.warning("the commands cannot be listed: %s", error.message)
            return
        await self._tell([update_available_commands(known)])

    async def _tell(self, updates: list[Update]) -> None:
        for update in updates:
            try:
                await self._client.session_update(session_id=self.id, update=update)
            except ConnectionError:
                return


def _ended(reason: StopReason) -> PromptResponse:
    return PromptResponse(stop_reason=reason)


def _response(finished: TurnFinished) -> PromptResponse:
    """How the turn ended, and what it cost: rates are tokens per second, null where nothing was measured."""
    stats = finished.stats
    figures = {
        "steps": finished.steps,
        "promptTokens": stats.prompt_tokens,
        "generatedTokens": stats.decoded_tokens,
        "tokensPerSecond": stats.decode_rate,
        "draftAcceptance": stats.acceptance_rate,
    }
    return PromptResponse(
        stop_reason=STOP_REASONS.get(finished.reason, "end_turn"), field_meta={"agent": figures}
    )
