"""What somebody else's program asks a person during a session: a short form, or to open an address."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

FieldKind = Literal["text", "number", "integer", "yes-no", "choice", "choices"]
ReplyAction = Literal["accept", "decline", "cancel"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionField:
    """One field of a form. `options` are pairs of the value that is sent and the text that is shown.

    `default` is what is sent where a person leaves the field alone; None where there is none.
    """

    name: str
    kind: FieldKind
    title: str
    description: str = ""
    required: bool = False
    default: Any = None
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`source` says who asks. With a `url` there are no fields: the person is to open it elsewhere."""

    source: str
    text: str
    fields: tuple[QuestionField, ...] = ()
    url: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the person did. `values` are by the names of fields; a field that is not in it has its default."""

    action: ReplyAction
    values: Mapping[str, Any] = field(default_factory=dict)


Asker = Callable[[Question], Awaitable[Reply]]
"""Puts a question to a person. Cancelled, it takes the question back."""


def parsed(text: str, wanted: QuestionField) -> Any:
    """What a person wrote into a field, as the value that is sent; None for an empty text.

    Raises:
        ValueError: it does not fit; the text says what would.
    """
    plain = text.strip()
    if not plain:
        return None
    if wanted.kind in ("number", "integer"):
        return _number(plain, wanted.kind)
    if wanted.kind == "yes-no":
        if plain.lower() in ("y", "yes", "true", "1"):
            return True
        if plain.lower() in ("n", "no", "false", "0"):
            return False
        raise ValueError("yes or no")
    if wanted.kind == "choice":
        return _chosen(plain, wanted)
    if wanted.kind == "choices":
        return [_chosen(part.strip(), wanted) for part in plain.split(",") if part.strip()]
    return plain


def _number(text: str, kind: FieldKind) -> int | float:
    try:
        return int(text) if kind == "integer" else float(text)
    except ValueError:
        raise ValueError("a whole number" if kind == "integer" else "a number") from None


def _chosen(text: str, wanted: QuestionField) -> str:
    for value, shown in wanted.options:
        if text in (value, shown):
            return value
    raise ValueError("one of " + ", ".join(value for value, _ in wanted.options[:20]))
