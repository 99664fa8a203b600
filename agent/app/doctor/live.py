"""Questions to a running server: does what a session needs of it really work? Takes less than a minute.

The chats are short and the same each time, and most of them have their beginning in common: reading is what
takes a slow server its time. They replace what the server's slot holds, so the next turn of a session on it
reads its prompt again.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agent.app.background import in_background
from agent.app.doctor.finding import Finding, of_error, ok, problem, warning
from agent.app.servers.foreign import connection_to, speaks_llama, template_arguments
from agent.app.servers.serving import Serving
from agent.app.turns.conversation import system_prompt
from agent.bench.baseline import Baseline
from agent.bench.measure import Measurement, MeasureOptions, measure
from agent.bench.prompt import BenchPrompt
from agent.core.errors import AgentError
from agent.core.guide import Offer
from agent.core.messages import Message, SystemMessage, ToolMessage, UserMessage
from agent.core.model import Reply
from agent.core.stats import StepStats
from agent.llm.client import ChatModel
from agent.llm.probe import makes_calls, protocol_named
from agent.llm.protocol import ToolProtocol, to_wire
from agent.server.asking import ask
from agent.server.profile import KINDS_WITH_A_MODEL
from agent.server.record import Endpoint
from tools import built_in_tools

PATIENCE_SECONDS = 55.0
_MEASURED_TOKENS = 64
_SLOW_RATE = 15.0
"""Tokens per second below which half as many have to do, or there is no time for the other questions."""
_SLOW_SHARE = 0.7
_LOW_ACCEPTANCE = 0.2
_ANSWER_SECONDS = 30.0
_LOOK_INTO_THE_LOG = "see `agent server logs`, or the log of the server where it runs elsewhere"
_TO_MEASURE = (
    "Write one Python file with a class Stack: push, pop, peek and size, each with a docstring, and five "
    "unittest tests. Answer with the code alone."
)
# So long that the words before the second reply are those before the first, for as far back as drafts look.
_TO_BE_REPEATED = (
    "Say the list of all parts once more, in the same order, with nothing before it and nothing after it."
)
_REPEATED = "".join(f"part_{n}: {word}, line {n * 7}; " for n, word in enumerate(
    ("amber", "basil", "cedar", "delta", "ember", "fjord", "grove", "heath")
))  # fmt: skip
_REPEATED_TOKENS = 84
_REUSED_SHARE = 0.9
_CALLED = ("glob", "finish")
_LITTLE_REPLY_TOKENS = 4
_QUESTION = "Call the tool `glob` with the pattern *.md now."


@dataclass(slots=True, kw_only=True)
class Live:
    """One look at one server. `baseline` is what was measured of it before."""

    serving: Serving
    endpoint: Endpoint
    protocol: str
    baseline: Baseline | None = None
    patience: float = PATIENCE_SECONDS
    clock: Callable[[], float] = time.monotonic
    began: float = field(default=0.0)

    async def examine(self) -> AsyncIterator[Finding]:
        """What the questions find. What there was no time for is a warning."""
        self.began = self.clock()
        questions: list[tuple[str, Callable[[], Awaitable[list[Finding]]]]] = [
            ("template", self._template),
            ("prefix", self._prefix),
            ("tool-call", self._tool_call),
            ("constrained", self._constrained),
            ("speed", self._speed),
        ]
        for number, (name, question) in enumerate(questions):
            left = self.patience - (self.clock() - self.began)
            try:
                async with asyncio.timeout(max(0.0, left)):
                    found = await question()
            except TimeoutError:
                names = ", ".join(name for name, _ in questions[number:])
                remedy = "it is slow, or busy; ask again when nobody else uses it"
                yield warning("live", f"not finished within {self.patience:.0f} s: {names}", remedy)
                return
            except AgentError as error:
                told = of_error(name, error)
                found = [told if told.remedy else replace(told, remedy=_LOOK_INTO_THE_LOG)]
            for one in found:
                yield one

    async def _template(self) -> list[Finding]:
        if not speaks_llama(self.endpoint):
            return []
        schema = {"type": "object", "properties": {"pattern": {"type": "string"}}, "required": ["pattern"]}
        function = {"name": "glob", "description": "lists files", "parameters": schema}
        body: dict[str, Any] = {
            "messages": [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Hello"}]
        }
        if self.protocol == "native":
            body["tools"] = [{"type": "function", "function": function}]
        status, answer = await in_background(lambda: self._post("/apply-template", body))
        prompt = answer.get("prompt") if isinstance(answer, dict) else None
        if status == 404:
            return []
        if status != 200 or not isinstance(prompt, str) or "Hello" not in prompt:
            reason = _reason(answer) or f"HTTP {status}"
            remedy = "set chat_template or chat_template_file in the profile, and jinja = true"
            return [problem("template", f"the chat template cannot be used: {reason}", remedy)]
        if self.protocol == "native" and "glob" not in prompt:
            remedy = 'set protocol = "constrained" below [tools] in the profile'
            return [warning("template", "the chat template leaves tools out", remedy)]
        return [ok("template", "the chat template renders")]

    async def _speed(self) -> list[Finding]:
        prompt = BenchPrompt.of_text(_TO_MEASURE)
        profile = self.serving.profile
        sampling = profile.sampling.model_dump(exclude_none=True, exclude={"temperature"})
        options = MeasureOptions(
            max_tokens=self._tokens_to_measure, model=self.endpoint.model, sampling=sampling, seed=42,
            template_arguments=template_arguments(self.endpoint, profile), timeout_seconds=self.patience,
        )  # fmt: skip
        found = await measure(self.endpoint, prompt, options)
        kinds = profile.speculation.kinds
        if kinds and not found.drafted and self.serving.is_managed and _drafts_from_context(kinds):
            found = replace(found, **await self._drafted_of_a_repetition(options))
        return [self._judged_speed(found), *self._judged_drafting(found)]

    async def _drafted_of_a_repetition(self, options: MeasureOptions) -> dict[str, int | None]:
        """What is drafted where the reply is the same as the one before, to which a grammar binds it."""
        if not speaks_llama(self.endpoint):
            return {}
        question = {"role": "user", "content": _TO_BE_REPEATED}
        messages = (question, {"role": "assistant", "content": _REPEATED}, question)
        prompt = BenchPrompt(id="repeated", category="own", messages=messages)
        bound = {"grammar": f"root ::= {json.dumps(_REPEATED)}\n"}
        found = await measure(
            self.endpoint, prompt, replace(options, max_tokens=_REPEATED_TOKENS, temperature=0.0, extra=bound)
        )
        return {"drafted": found.drafted, "accepted": found.accepted}

    @property
    def _tokens_to_measure(self) -> int:
        is_slow = self.baseline is not None and self.baseline.decode_rate < _SLOW_RATE
        return _MEASURED_TOKENS // 2 if is_slow else _MEASURED_TOKENS

    def _judged_speed(self, found: Measurement) -> Finding:
        rate = found.decode_rate
        if rate is None:
            return warning("speed", "the server gave no figures for its speed", "agent bench")
        here = ", measured here" if found.measured_here else ""
        if self.baseline is None:
            return ok("speed", f"{rate:.1f} tok/s{here}; there is no baseline to compare with")
        usual = self.baseline.decode_rate
        text = f"{rate:.1f} tok/s{here}, {usual:.1f} when it was measured last"
        if rate < usual * _SLOW_SHARE:
            remedy = (
                "end other programs, look at the GPU's clock and heat; `agent bench` if this is normal now"
            )
            return warning("speed", text, remedy)
        return ok("speed", text)

    def _judged_drafting(self, found: Measurement) -> list[Finding]:
        kinds = self.serving.profile.speculation.kinds
        managed = self.serving.is_managed
        if not kinds or (not managed and not found.drafted):
            return []
        names = " + ".join(kinds)
        if found.drafted is None:
            return [
                warning("drafting", f"{names}: the server says nothing about drafting", "see docs/engines.md")
            ]
        if found.drafted:
            share = found.acceptance or 0.0
            text = f"{names}: {found.drafted} tokens drafted, {share:.0%} accepted"
            if share < _LOW_ACCEPTANCE and self.serving.profile.speculation.kind in KINDS_WITH_A_MODEL:
                remedy = (
                    f"`agent bench {self.endpoint.profile} --against-plain` tells whether it gains anything"
                )
                return [warning("drafting", text, remedy)]
            return [ok("drafting", text)]
        if self.serving.profile.speculation.kind in KINDS_WITH_A_MODEL:
            remedy = "see `agent server status` and `agent server logs` for the reason"
            return [problem("drafting", f"{names}: nothing is drafted", remedy)]
        remedy = f"look at n_match, size_n and n_min; `agent bench {self.endpoint.profile} --against-plain`"
        return [warning("drafting", f"{names}: nothing is drafted, not even of a repeated text", remedy)]

    async def _tool_call(self) -> list[Finding]:
        """A call, its result, and a reply to that."""
        model = self._model(self.protocol)
        bound = self.protocol == "constrained"
        offer = Offer(tools=frozenset({"glob"})) if bound else Offer()
        messages = self._asked_for_a_call
        remedy = f'set protocol = "{"native" if bound else "constrained"}" below [tools] in the profile'
        try:
            first = await _reply(model, messages, 96, offer)
            if first is None or first.stop_reason == "error":
                reason = first.error if first else "no reply"
                return [problem("tool-call", f"{self.protocol} tool calls: {reason}", remedy)]
            calls = first.message.tool_calls
            if not calls:
                reason = f" ({first.problem})" if first.problem else ""
                text = f"the model answered a request for a {self.protocol} tool call without one{reason}"
                return [warning("tool-call", text, f"it may be too small; else {remedy}")]
            result = ToolMessage(calls[0].id, calls[0].name, "README.md")
            second = await _reply(model, [*messages, first.message, result], _LITTLE_REPLY_TOKENS, Offer())
        finally:
            await model.close()
        if second is None or second.stop_reason in ("error", "overflow"):
            reason = second.error if second else "no reply"
            return [problem("tool-call", f"the server refuses the result of a tool call: {reason}", remedy)]
        found = [ok("tool-call", f"{self.protocol} tool calls work, there and back ({calls[0].name})")]
        if bound:
            found.append(ok("constrained", "replies are bound to a schema"))
        return [*found, *self._judged_growth(first.stats, second.stats)]

    def _judged_growth(self, first: StepStats, second: StepStats) -> list[Finding]:
        """Whether the prompt of a turn is found again when the result of a call is added to it."""
        before = first.prompt_tokens + first.cached_tokens
        after = second.prompt_tokens + second.cached_tokens
        if not speaks_llama(self.endpoint) or not before or not after:
            return []
        text = f"of a turn's {before} tokens {min(before, second.cached_tokens)} are reused after a tool call"
        if second.cached_tokens < before * _REUSED_SHARE:
            remedy = (
                "its template or its windowed layers are the cause: preserve_reasoning, swa_full or "
                "checkpoints in the profile; docs/models.md"
            )
            return [warning("turn-prefix", text, remedy)]
        return [ok("turn-prefix", text)]

    async def _constrained(self) -> list[Finding]:
        if self.protocol == "constrained":
            return []  # the round trip is bound by a schema, and tells
        model = self._model("constrained")
        try:
            works = await makes_calls(model, _protocol("constrained"), system_prompt())
        finally:
            await model.close()
        if works:
            return [ok("constrained", "replies can be bound to a schema")]
        why = (
            "the server does not bind replies to a schema" if works is False else "the server refuses schemas"
        )
        return [warning("constrained", why, "native tool calls work without; update the server for it")]

    @property
    def _asked_for_a_call(self) -> list[Message]:
        """As a session begins."""
        protocol = _protocol(self.protocol)
        return [SystemMessage(protocol.system_text(system_prompt())), UserMessage(_QUESTION)]

    async def _prefix(self) -> list[Finding]:
        """The same request twice: the second one should find its prompt in the cache, as the call will."""
        if not speaks_llama(self.endpoint):
            return []
        fields = _protocol(self.protocol).request_fields(Offer())
        body = {
            "model": self.endpoint.model,
            "messages": to_wire(self._asked_for_a_call),
            "max_tokens": 1,
            "cache_prompt": True,
            **{name: value for name, value in fields.items() if name == "tools"},
        }
        if told := template_arguments(self.endpoint, self.serving.profile):
            body["chat_template_kwargs"] = dict(told)
        timings: dict[str, Any] = {}
        for _ in range(2):
            status, answer = await in_background(
                lambda: self._post("/v1/chat/completions", body, self.patience)
            )
            if status != 200 or not isinstance(answer, dict):
                return [
                    warning(
                        "prefix", f"asked twice, and refused: {_reason(answer) or status}", _LOOK_INTO_THE_LOG
                    )
                ]
            given = answer.get("timings")
            timings = given if isinstance(given, dict) else {}
        cached, read = timings.get("cache_n"), timings.get("prompt_n")
        if not isinstance(cached, int) or not isinstance(read, int):
            return [ok("prefix", "the server does not say how much of a prompt it reuses")]
        if cached < read:
            remedy = "raise cache_ram_mib, and look for a model whose state cannot be cut (`swa_full`)"
            text = f"of a repeated prompt {cached} tokens are reused and {read} are read again"
            return [warning("prefix", text, remedy)]
        return [ok("prefix", f"of a repeated prompt {cached} of {cached + read} tokens are reused")]

    def _model(self, protocol: str) -> ChatModel:
        return ChatModel(
            connection_to(self.endpoint, self.serving.profile),
            _protocol(protocol),
            context_tokens=self.endpoint.context_tokens,
            sampling=self.serving.profile.sampling.model_dump(exclude_none=True),
            cancel=asyncio.Event(),
        )

    def _post(self, path: str, body: Any, timeout: float = _ANSWER_SECONDS) -> tuple[int, Any]:
        endpoint = self.endpoint
        return ask(endpoint.base_url, path, endpoint.api_key, body=body, timeout=timeout)


async def _reply(model: ChatModel, messages: Any, tokens: int, offer: Offer) -> Reply | None:
    async for item in model.generate(messages, max_tokens=tokens, offer=offer):
        if isinstance(item, Reply):
            return item
    return None


def _protocol(name: str) -> ToolProtocol:
    """With all tools where the server has to render and understand them, else with those that are called."""
    tools = built_in_tools()
    return protocol_named(name, tools if name == "native" else [one for one in tools if one.name in _CALLED])


def _drafts_from_context(kinds: Sequence[str]) -> bool:
    """Whether nothing drafts but what looks for the words before in the conversation."""
    return not set(kinds) & set(KINDS_WITH_A_MODEL)


def _reason(answer: Any) -> str:
    error = answer.get("error") if isinstance(answer, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    return str(message)[:200] if message else ""
