"""What a server takes of a request, learnt from what it refuses and remembered for the session.

llama-server takes everything that is sent here. Others speak the same API with more or less of it: some
refuse fields that they do not know, some have no tool calls for a model, some bind no reply to a schema.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent.core.guide import Offer
from agent.core.messages import Message, SystemMessage
from agent.llm.failures import Failure
from agent.llm.pictures import EncodedPictures, PictureHabits
from agent.llm.protocol import ToolProtocol, to_wire
from agent.llm.turns import TurnHabits

_ONLY_LLAMA: Mapping[str, Any] = {"cache_prompt": True, "return_progress": True}
_NEEDED = frozenset({"model", "messages", "tools", "stream", "max_tokens", "max_completion_tokens"})
_OF_A_PROTOCOL = frozenset({"tools", "tool_choice", "response_format", "grammar"})
_REFUSES = re.compile(
    r"extra|unknown|unrecogni[sz]ed|unexpected|unsupported|additional propert"
    r"|not (?:permitted|allowed|supported|known|a valid)|(?:does not|doesn't) support|no such field",
    re.IGNORECASE,
)
_REFUSES_WITHOUT_A_NAME = re.compile(
    r"extra (?:input|field|param)|unknown (?:field|argument|param|name)|unrecogni[sz]ed|additional propert",
    re.IGNORECASE,
)
# vLLM: `"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set`;
# Ollama: `... does not support tools`; llama-server: `tools param requires --jinja flag`.
_NO_TOOLS = re.compile(
    r"tool[ _]choice|support\w* (?:for )?(?:tools?|functions?)\b|tools? (?:use|calling|calls?) .*not support"
    r"|tools?\W+(?:param|is not|are not)|(?:unknown|unrecogni[sz]ed|unexpected|unsupported)\b.*\btools\b",
    re.IGNORECASE,
)
# llama-server without --jinja, and with a template that fails on the tools (HTTP 400 or 500).
_NO_TOOLS_HERE = re.compile(r"tools param requires|parser generation failed|While executing \w+ at line")
_NO_SCHEMA = re.compile(
    r"response_?format|json_?schema|guided|structured.?output|grammar|xgrammar|outlines", re.IGNORECASE
)


class ServerHabits:
    """Builds requests. `other` is the way of calling tools for a server that refuses `protocol`.

    `llama_fields` and `grammars` say whether llama-server's own fields are sent to begin with;
    `template_arguments` is what the model's chat template is told with each request.
    """

    def __init__(
        self,
        protocol: ToolProtocol,
        other: ToolProtocol | None = None,
        *,
        llama_fields: bool = True,
        grammars: bool = True,
        template_arguments: Mapping[str, Any] | None = None,
    ) -> None:
        self.protocol = protocol
        self._wanted = protocol
        self._other = other
        self._dropped: set[str] = set() if llama_fields else set(_ONLY_LLAMA)
        if not grammars:
            self._dropped.add("grammar")
        self._template = {"chat_template_kwargs": dict(template_arguments)} if template_arguments else {}
        self._limit_name = "max_tokens"
        self._sent: frozenset[str] = frozenset()
        self._answered = False
        self._turns = TurnHabits()
        self._pictures = PictureHabits()
        self._encoded = EncodedPictures()

    def answered(self) -> None:
        """Notes that a request was accepted: what is refused from now on is not the way of calling tools."""
        self._answered = True

    def request(
        self,
        messages: Sequence[Message],
        *,
        model: str,
        max_tokens: int,
        offer: Offer,
        sampling: Mapping[str, Any],
    ) -> dict[str, Any]:
        """The body of a chat request, without what the server has refused before."""
        if "grammar" in self._dropped:
            offer = _without_blocks(offer)
        fields = {
            "model": model,
            "messages": self._wire(messages),
            **self.protocol.request_fields(offer),
            **sampling,
            self._limit_name: max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
            **_ONLY_LLAMA,
            **self._template,
        }
        request = {name: value for name, value in fields.items() if name not in self._dropped}
        self._sent = frozenset(request)
        if any("reasoning_content" in message for message in request["messages"]):
            self._sent |= {"reasoning_content"}
        return request

    def learn(self, failure: Failure) -> str:
        """Changes what is sent from now on, so that the last request may be sent again.

        Returns:
            One line for people on what changed; empty where nothing can be done about the failure.
        """
        said = failure.said
        if failure.kind not in ("unacceptable", "server") or not said:
            return ""
        if lesson := self._turns.learn(failure) or self._pictures.learn(failure):
            return lesson
        refused = _NO_TOOLS_HERE.search(said) or (failure.kind == "unacceptable" and _NO_TOOLS.search(said))
        if "tools" in self._sent and refused:
            return self._switch("takes no tool calls for this model", "replies are bound to a schema instead")
        if failure.kind != "unacceptable":
            return ""
        if "grammar" in self._sent and "grammar" in said.lower():
            self._dropped.add("grammar")
            return "the server takes no grammars, so files are written as part of a call"
        if "response_format" in self._sent and _NO_SCHEMA.search(said):
            return self._switch("cannot bind replies to a schema", "its own tool calls are used instead")
        return self._drop(said)

    def _drop(self, said: str) -> str:
        if self._limit_name == "max_tokens" and "max_completion_tokens" in said:
            self._limit_name = "max_completion_tokens"
            return "the server calls max_tokens max_completion_tokens, so it is sent by that name"
        if not _REFUSES.search(said):
            return ""
        optional = self._sent - _NEEDED - _OF_A_PROTOCOL
        named = {name for name in optional if re.search(rf"\b{re.escape(name)}\b", said)}
        if named & _ONLY_LLAMA.keys():
            named |= optional & _ONLY_LLAMA.keys()
        unnamed = optional & _ONLY_LLAMA.keys() if _REFUSES_WITHOUT_A_NAME.search(said) else set()
        dropped = named or unnamed
        if not dropped:
            return ""
        self._dropped |= dropped
        return f"the server does not know {', '.join(sorted(dropped))}, so it is asked without from now on"

    def _switch(self, problem: str, instead: str) -> str:
        if self._other is None or self._answered or self.protocol is not self._wanted:
            return ""
        self.protocol = self._other
        return f"the server {problem}, so {instead}"

    def _wire(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        if self.protocol is not self._wanted:
            messages = [self._retold(message) for message in messages]
        plain = self._turns.arranged(to_wire(messages, self._encoded))
        wire = [dict(record) for record in self._pictures.arranged(plain)]
        if "reasoning_content" in self._dropped:
            wire = [{k: v for k, v in message.items() if k != "reasoning_content"} for message in wire]
        return wire

    def _retold(self, message: Message) -> Message:
        """The system message, with what the present protocol says about tools in place of the wanted one."""
        if not isinstance(message, SystemMessage):
            return message
        base = message.text.removesuffix(self._wanted.system_text(""))
        return SystemMessage(self.protocol.system_text(base))


def _without_blocks(offer: Offer) -> Offer:
    """The same choice for a server without grammars: files go into the arguments of `write`."""
    if not offer.blocks:
        return offer
    return replace(offer, paths={**offer.paths, "write": offer.blocks}, blocks=())
