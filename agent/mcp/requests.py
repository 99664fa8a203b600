"""Single requests to a connected server, with a time limit and errors that people understand.

A request can come back unanswered because the server needs something first (in the 2026-07-28 revision, and
in the one before by error -32042, with addresses to open); that is answered with what the connection answers
such questions with, and the request is made again.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.core.errors import AgentError
from agent.mcp.text import one_line

LONGEST_CALL_FACTOR = 10
"""Progress prolongs a call, but not for ever."""

MOST_ROUNDS = 10
Progress = Callable[[str], None]


@dataclass(slots=True)
class CallClock:
    """The time limit of one request. It stands still while a person is asked."""

    seconds: float
    _scope: Any = None
    _latest: float = 0.0
    _held: int = 0

    def start(self, scope: Any) -> None:
        import anyio

        self._scope = scope
        self._latest = anyio.current_time() + self.seconds * LONGEST_CALL_FACTOR
        self.sign_of_life()

    def sign_of_life(self) -> None:
        """Counts the time anew, up to the longest time that a call may take in all."""
        import anyio

        if not self._held:
            self._scope.deadline = min(self._latest, anyio.current_time() + self.seconds)

    def hold(self) -> None:
        import anyio

        if not self._held:
            self._latest -= anyio.current_time()
        self._held += 1
        self._scope.deadline = float("inf")

    def go_on(self) -> None:
        import anyio

        self._held -= 1
        if not self._held:
            self._latest += anyio.current_time()
            self.sign_of_life()


@dataclass(slots=True)
class Requests:
    """Makes requests for the server `name`; `clocks` are those of the requests that are under way."""

    name: str
    seconds: float
    clocks: list[CallClock] = field(default_factory=list)

    async def call_tool(
        self, client: Any, tool: str, arguments: Mapping[str, Any], progress: Progress
    ) -> Any:
        """A `CallToolResult`. Raises AgentError."""
        import mcp_types
        from pydantic import TypeAdapter

        # Not `call_tool`: that checks results with schemas of the server's, of any cost.
        kind: TypeAdapter[Any] = TypeAdapter(mcp_types.CallToolResult | mcp_types.InputRequiredResult)

        async def ask(clock: CallClock, responses: Any, state: str | None) -> Any:
            async def on_progress(done: float, total: float | None, message: str | None) -> None:
                clock.sign_of_life()
                share = f"{done:g}/{total:g}" if total else f"{done:g}"
                progress(f"{share} {one_line(message or '', 200)}".rstrip() + "\n")

            params = mcp_types.CallToolRequestParams(
                name=tool, arguments=dict(arguments), input_responses=responses, request_state=state
            )
            request = mcp_types.CallToolRequest(params=params)
            return await client.session.send_request(request, kind, progress_callback=on_progress)

        return await self._answered(client, ask, "no result of a tool", "the call was given up")

    async def get_prompt(self, client: Any, prompt: str, arguments: Mapping[str, str]) -> Any:
        """A `GetPromptResult`. Raises AgentError."""

        async def ask(_: CallClock, responses: Any, state: str | None) -> Any:
            return await client.session.get_prompt(
                prompt,
                dict(arguments),
                input_responses=responses,
                request_state=state,
                allow_input_required=True,
            )

        return await self._answered(client, ask, "no prompt", "it was given up")

    async def read_resource(self, client: Any, uri: str) -> Any:
        """A `ReadResourceResult`. Raises AgentError."""

        async def ask(_: CallClock, responses: Any, state: str | None) -> Any:
            return await client.session.read_resource(
                uri, input_responses=responses, request_state=state, allow_input_required=True
            )

        return await self._answered(client, ask, "no resource", "it was given up")

    async def _answered(
        self, client: Any, ask: Callable[..., Awaitable[Any]], wrong: str, given_up: str
    ) -> Any:
        import anyio
        from mcp.shared.exceptions import MCPError
        from pydantic import ValidationError

        clock = CallClock(self.seconds)
        try:
            with anyio.fail_after(self.seconds) as scope:
                clock.start(scope)
                self.clocks.append(clock)
                return await self._rounds(client, ask, clock)
        except TimeoutError:
            raise AgentError(
                f"{self.name} did not answer within {self.seconds:g} seconds; {given_up}"
            ) from None
        except MCPError as error:
            raise AgentError(f"{self.name} refuses: {one_line(str(error), 500)}") from None
        except ValidationError:
            raise AgentError(f"{self.name} answered with something that is {wrong}") from None
        finally:
            if clock in self.clocks:
                self.clocks.remove(clock)

    async def _rounds(self, client: Any, ask: Callable[..., Awaitable[Any]], clock: CallClock) -> Any:
        import anyio
        import mcp_types
        from mcp.shared.exceptions import MCPError

        responses: Any = None
        state: str | None = None
        for number in range(MOST_ROUNDS):
            try:
                result = await ask(clock, responses, state)
            except MCPError as error:
                if not await self._opened(client, error):
                    raise
                continue
            if not isinstance(result, mcp_types.InputRequiredResult):
                return result
            if not result.input_requests:
                await anyio.sleep(0.05 * (number + 1))
            responses = await self._responses(client, result.input_requests or {})
            state = result.request_state
        raise AgentError(f"{self.name} asks again and again and never answers")

    async def _responses(self, client: Any, wanted: Mapping[str, Any]) -> Any:
        import mcp_types
        from mcp.client.session import ClientRequestContext

        found: dict[str, Any] = {}
        for key, request in list(wanted.items())[:MOST_ROUNDS]:
            context = ClientRequestContext(session=client.session, request_id=key)
            answer = await client.session.dispatch_input_request(context, request)
            if isinstance(answer, mcp_types.ErrorData):
                raise AgentError(f"{self.name} wants what it does not get: {one_line(answer.message, 200)}")
            found[key] = answer
        return found or None

    async def _opened(self, client: Any, error: Any) -> bool:
        """Whether a person has opened all addresses that the server names in refusing the request."""
        import mcp_types
        from mcp.client.session import ClientRequestContext

        data = error.data if error.code == mcp_types.URL_ELICITATION_REQUIRED else None
        wanted = data.get("elicitations") if isinstance(data, Mapping) else None
        if not isinstance(wanted, list) or not 0 < len(wanted) <= MOST_ROUNDS:
            return False
        for item in wanted:
            params = mcp_types.ElicitRequestURLParams.model_validate(item)
            context = ClientRequestContext(
                session=client.session, request_id=params.elicitation_id or "refused"
            )
            request = mcp_types.ElicitRequest(params=params)
            answer = await client.session.dispatch_input_request(context, request)
            if not isinstance(answer, mcp_types.ElicitResult) or answer.action != "accept":
                return False
        return True
