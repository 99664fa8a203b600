"""Making messages shorter without asking a model: estimates, old results left out, long results cut."""

import re
from collections.abc import Sequence
from dataclasses import replace

from agent.core.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage

LEFT_OUT = "[an old result, left out to make room; call the tool again if you need it]"
MESSAGE_TOKENS = 8
"""What a template puts around a message, at most about so much."""

_SHORT_RESULT = 200
_DENSE = re.compile(r"[!-@\[-`{-~]")
_TOKENS_PER_DENSE, _LETTERS_PER_TOKEN, _OTHER_BYTES_PER_TOKEN = 0.8, 4.5, 2.8
"""Tokenizers give nearly each digit and each mark a token of its own. Others are bytes of no ASCII."""

_CHARACTERS_PER_TOKEN = 3.6
_MOST_CHARACTERS_PER_TOKEN = 10


def cut(text: str, characters: int) -> str:
    """`text`, or its beginning and end with a mark between, in about that many characters."""
    if len(text) <= characters:
        return text
    head, tail = text[: characters * 2 // 3], text[len(text) - characters // 3 :]
    return f"{head}\n[… {len(text) - len(head) - len(tail)} characters left out …]\n{tail}"


def text_of(message: Message, *, thoughts: bool = False) -> str:
    """The texts of a message as they are in a prompt."""
    if isinstance(message, AssistantMessage):
        calls = [f"{call.name} {call.raw_arguments}" for call in message.tool_calls if not call.in_text]
        return "\n".join([*([message.reasoning] if thoughts else []), message.text, *calls])
    if isinstance(message, ToolMessage):
        return "\n".join(filter(None, [message.tool_name, message.text, message.note]))
    return message.text


def tokens_of(messages: Sequence[Message], characters_per_token: float) -> int:
    """About how many tokens these messages have, thoughts left out."""
    size = sum(len(text_of(message)) for message in messages)
    return round(size / characters_per_token) + MESSAGE_TOKENS * len(messages)


def could_have(messages: Sequence[Message], tokens: int) -> bool:
    """Whether these messages could take up so few tokens. Some servers count only what they evaluate."""
    return tokens * _MOST_CHARACTERS_PER_TOKEN >= sum(len(text_of(one)) for one in messages)


def least_tokens(messages: Sequence[Message]) -> int:
    """Fewer tokens than this are rare for such messages, whatever a server says."""
    return tokens_of(messages, _LETTERS_PER_TOKEN)


def careful_estimate(text: str) -> int:
    """Tokens of `text` where no server counts them: rather too many, as some cut a long prompt unsaid."""
    size = len(text.encode("utf-8", "replace"))
    plain, dense = len(text.encode("ascii", "ignore")), len(_DENSE.findall(text))
    by_kind = dense * _TOKENS_PER_DENSE + (plain - dense) / _LETTERS_PER_TOKEN
    return round(max(len(text) / _CHARACTERS_PER_TOKEN, by_kind + (size - plain) / _OTHER_BYTES_PER_TOKEN))


def without_thoughts(messages: Sequence[Message]) -> list[Message]:
    return [
        replace(one, reasoning="") if isinstance(one, AssistantMessage) and one.reasoning else one
        for one in messages
    ]


def without_results(messages: Sequence[Message], until: int) -> list[Message]:
    """The same with the results of the first `until` messages left out, all in one cut."""
    return [
        replace(one, text=LEFT_OUT, note="")
        if position < until and isinstance(one, ToolMessage) and _size(one) > _SHORT_RESULT
        else one
        for position, one in enumerate(messages)
    ]


def _size(message: Message) -> int:
    """Characters of a result with what was said with it."""
    return len(message.text) + (len(message.note) if isinstance(message, ToolMessage) else 0)


def last_turn(messages: Sequence[Message]) -> int:
    """Where the last turn of the person's begins."""
    places = [place for place, one in enumerate(messages) if isinstance(one, UserMessage)]
    return places[-1] if places else 0


def with_shorter_results(messages: Sequence[Message], characters: int) -> list[Message]:
    """The same with about `characters` less: the longest results are cut, none below a few lines."""
    shorter = list(messages)
    while characters > 0:
        longest = max(
            (place for place, one in enumerate(shorter) if isinstance(one, ToolMessage)),
            key=lambda place: _size(shorter[place]),
            default=None,
        )
        if longest is None:
            break
        size = _size(shorter[longest])
        shorter[longest] = _cut_result(shorter[longest], characters + 60)
        gained = size - _size(shorter[longest])
        if gained <= 0:
            break
        characters -= gained
    return shorter


def _cut_result(result: Message, characters: int) -> Message:
    """About so much less of the longer part, the result itself or what was said with it."""
    if not isinstance(result, ToolMessage):
        return result
    is_note = len(result.note) > len(result.text)
    part = result.note if is_note else result.text
    shorter = cut(part, max(_SHORT_RESULT, len(part) - characters))
    if len(shorter) >= len(part):
        return result
    return replace(result, note=shorter) if is_note else replace(result, text=shorter)


def largest_items(messages: Sequence[Message], fixed: int, characters_per_token: float) -> str:
    """The three things that take up most, for people: `fixed` tokens are the system text and the tools."""
    calls = {
        call.id: call.arguments
        for one in messages
        if isinstance(one, AssistantMessage)
        for call in one.tool_calls
    }
    sizes = [("the system text with the tools", fixed)]
    for place, message in enumerate(messages):
        if isinstance(message, SystemMessage):
            continue
        tokens = tokens_of([message], characters_per_token)
        if isinstance(message, ToolMessage):
            about = calls.get(message.call_id, {})
            subject = next((str(about[name]) for name in ("path", "command") if name in about), "")
            sizes.append((f"a result of {message.tool_name} {subject}".rstrip(), tokens))
        elif isinstance(message, UserMessage):
            sizes.append(("the first message" if place <= 1 else "a later message", tokens))
        else:
            sizes.append(("a reply", tokens))
    largest = sorted(sizes, key=lambda item: -item[1])[:3]
    return ", ".join(f"{name[:80]} ({tokens} tokens)" for name, tokens in largest)
