"""What a server asks the person: its form as ours, and the reply in the form that it asked for."""

from collections.abc import Mapping
from typing import Any

from agent.core.questions import FieldKind, Question, QuestionField, Reply
from agent.mcp.schema import problems_of
from agent.mcp.text import one_line

MOST_FIELDS = 30
MOST_OPTIONS = 100
_KINDS: dict[str, FieldKind] = {
    "string": "text",
    "number": "number",
    "integer": "integer",
    "boolean": "yes-no",
    "array": "choices",
}
_PLAIN = (str, int, float, bool)


def as_question(server: str, params: Any) -> Question | None:
    """The question of an `elicitation/create`; None where its form cannot be shown."""
    text = one_line(params.message, 1000)
    if getattr(params, "mode", "form") == "url":
        url = str(params.url)
        if not url.isprintable() or len(url) > 2000 or not url.startswith(("https://", "http://")):
            return None
        return Question(source=server, text=text, url=url)
    schema = params.requested_schema
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or len(properties) > MOST_FIELDS:
        return None
    needed = schema.get("required")
    required = {name for name in needed if isinstance(name, str)} if isinstance(needed, list) else set()
    fields = [_field(str(name), item, str(name) in required) for name, item in properties.items()]
    if any(item is None for item in fields):
        return None
    return Question(source=server, text=text, fields=tuple(item for item in fields if item is not None))


def content_of(reply: Reply, question: Question, schema: Any) -> tuple[dict[str, Any] | None, list[str]]:
    """What is sent for an accepted form, defaults in place of what was left alone, and what is wrong with it.

    SEP-1034 has clients fill in defaults of every primitive type.
    """
    content: dict[str, Any] = {}
    for item in question.fields:
        value = reply.values.get(item.name, item.default)
        if value is not None:
            content[item.name] = value
    return content, problems_of(content, schema)


def _field(name: str, item: Any, required: bool) -> QuestionField | None:
    if not isinstance(item, Mapping) or not name.isprintable() or len(name) > 100:
        return None
    kind = _KINDS.get(str(item.get("type", "")))
    if kind is None:
        return None
    of = item.get("items") if kind == "choices" else item
    options = _options(of if isinstance(of, Mapping) else {})
    if kind == "choices" and not options:
        return None
    return QuestionField(
        name=name,
        kind="choice" if kind == "text" and options else kind,
        title=one_line(str(item.get("title") or name), 80),
        description=one_line(str(item.get("description") or ""), 200),
        required=required,
        default=_default(item.get("default"), kind),
        options=options,
    )


def _options(item: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The choices in each of the ways that servers write them."""
    titled = item.get("oneOf") or item.get("anyOf")
    if isinstance(titled, list):
        pairs = [(one.get("const"), one.get("title")) for one in titled if isinstance(one, Mapping)]
    else:
        values = item.get("enum")
        names = item.get("enumNames")
        titles = names if isinstance(names, list) else []
        listed = values if isinstance(values, list) else []
        pairs = [(value, titles[at] if at < len(titles) else None) for at, value in enumerate(listed)]
    return tuple(
        (value, one_line(str(title or value), 80))
        for value, title in pairs[:MOST_OPTIONS]
        if isinstance(value, str)
    )


def _default(value: Any, kind: FieldKind) -> Any:
    if kind == "choices":
        is_list = isinstance(value, list) and all(isinstance(part, str) for part in value)
        return list(value) if is_list else None
    return value if isinstance(value, _PLAIN) else None
