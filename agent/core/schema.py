"""The JSON schema of a tool's parameters, in the few words that servers can turn into a grammar.

llama.cpp builds a grammar from these schemas and refuses some constructs for the whole request, and
everything sent is prompt. So only `type`, `properties`, `required`, `items`, `enum` and `description`
are kept. The schema may therefore allow less than the model class, never something else: the call
is validated against the class anyway.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel


def parameters_schema(params: type[BaseModel]) -> dict[str, Any]:
    """The trimmed schema of `params`.

    Optional fields appear as their plain type and outside `required`; of a union the first type that
    is not null is offered; references are written out, a recursive one as a plain object.
    """
    schema = params.model_json_schema()
    trimmed = _trim(schema, schema.get("$defs", {}), ())
    trimmed.pop("description", None)  # the class docstring speaks to people, the tool has its own text
    trimmed.setdefault("properties", {})
    return trimmed


def _trim(schema: Mapping[str, Any], definitions: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    resolved, path = _resolve(schema, definitions, path)
    result: dict[str, Any] = {}
    if "type" in resolved:
        result["type"] = _single_type(resolved["type"])
    if "const" in resolved:
        result["enum"] = [resolved["const"]]
    if "enum" in resolved:
        result["enum"] = [value for value in resolved["enum"] if value is not None]
    if "description" in schema:
        result["description"] = schema["description"]
    if "items" in resolved:
        result["items"] = _trim(resolved["items"], definitions, path)
    if resolved.get("properties"):
        result["properties"] = {
            name: _trim(field, definitions, path) for name, field in resolved["properties"].items()
        }
    if resolved.get("required"):
        result["required"] = list(resolved["required"])
    return result


def _resolve(
    schema: Mapping[str, Any], definitions: Mapping[str, Any], path: tuple[str, ...]
) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Follows references and picks one branch of a union until a plain schema is left."""
    while True:
        branches = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
        if branches:
            schema = next((branch for branch in branches if branch.get("type") != "null"), branches[0])
            continue
        if "$ref" not in schema:
            return schema, path
        name = schema["$ref"].rsplit("/", 1)[-1]
        if name in path:
            return {"type": "object"}, path
        path = (*path, name)
        schema = definitions[name]


def _single_type(value: str | list[str]) -> str:
    if isinstance(value, str):
        return value
    return next((name for name in value if name != "null"), "null")
