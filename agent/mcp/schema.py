"""Schemas of somebody else's tools: what of them a llama.cpp server can turn into a grammar, and checking.

llama.cpp compiles the parameters of all offered tools to one grammar, and refuses the whole request for one
look-ahead in one pattern. So each schema is projected: only type, properties, required, items, enum and a
short description are left. The projection may allow less or more than the original; the arguments of a call
are checked against the original before they are sent.
"""

import json
from collections.abc import Mapping
from typing import Any

from agent.mcp.text import one_line

DEEPEST = 6
"""Levels of nesting that are described; below that any object or list will do."""

MOST_PROPERTIES = 60
MOST_CHOICES = 100
LARGEST_CHARACTERS = 200_000
DESCRIPTION_CHARACTERS = 160
PARAMETER_CHARACTERS = 80
_LONGEST_PROPERTY_NAME = 64
_TYPES = frozenset({"string", "integer", "number", "boolean", "object", "array", "null"})
# Patterns are the server's own affair: a hostile one could keep Python's matcher busy for ever.
_UNCHECKED = frozenset({"pattern", "patternProperties", "format", "$schema", "$id", "$dynamicRef"})


class UnfitSchemaError(Exception):
    """A schema that no model can be offered; the text says why."""


def projected(schema: Any) -> dict[str, Any]:
    """The part of a tool's input schema that grammars can be made of.

    Raises:
        UnfitSchemaError: it is not the schema of an object, refers to what is not there, or is huge.
    """
    if not isinstance(schema, Mapping):
        raise UnfitSchemaError("its input schema is not an object")
    try:
        size = len(json.dumps(schema))
    except (ValueError, TypeError, RecursionError):
        raise UnfitSchemaError("its input schema cannot be read") from None
    if size > LARGEST_CHARACTERS:
        raise UnfitSchemaError(f"its input schema is huge ({size} characters)")
    result = _Projection(schema).of(schema, 0, ())
    if result.get("type") != "object":
        raise UnfitSchemaError("its input schema does not describe an object")
    if len(result.get("properties", {})) > MOST_PROPERTIES:
        raise UnfitSchemaError(f"it has more than {MOST_PROPERTIES} parameters")
    result.pop("description", None)
    result.setdefault("properties", {})
    return result


class _Projection:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root

    def of(self, schema: Any, depth: int, path: tuple[str, ...]) -> dict[str, Any]:
        if not isinstance(schema, Mapping):
            return {"type": "string"}  # true, false or a mistake: anything may be meant
        merged, path = self._resolved(schema, path)
        result: dict[str, Any] = {"type": _type_of(merged)}
        description = schema.get("description") or merged.get("description")
        if isinstance(description, str) and description.strip():
            result["description"] = one_line(description, PARAMETER_CHARACTERS)
        choices = _choices(merged)
        if choices:
            return {**result, "type": _type_of_value(choices[0]), "enum": choices}
        if result["type"] == "array":
            # The template of gpt-oss and others fail on a list that does not say what is in it.
            result["items"] = {}
        if depth >= DEEPEST:
            return result
        if result["type"] == "array" and isinstance(merged.get("items"), Mapping):
            result["items"] = self.of(merged["items"], depth + 1, path)
        if result["type"] == "object":
            result |= self._object(merged, depth, path)
        return result

    def _object(self, schema: Mapping[str, Any], depth: int, path: tuple[str, ...]) -> dict[str, Any]:
        properties = schema.get("properties")
        if not isinstance(properties, Mapping) or not properties:
            return {}
        for name in properties:
            if not isinstance(name, str) or not name.isprintable() or len(name) > _LONGEST_PROPERTY_NAME:
                raise UnfitSchemaError(f"a parameter has the name {one_line(repr(name), 40)}")
        result: dict[str, Any] = {
            "properties": {name: self.of(item, depth + 1, path) for name, item in properties.items()}
        }
        listed = schema.get("required")
        required = [name for name in properties if isinstance(listed, list) and name in listed]
        return {**result, "required": required} if required else result

    def _resolved(
        self, schema: Mapping[str, Any], path: tuple[str, ...]
    ) -> tuple[Mapping[str, Any], tuple[str, ...]]:
        """`schema` with references followed, all of `allOf` and one branch of each union laid into it."""
        for _ in range(32):
            reference = schema.get("$ref")
            if reference is not None:
                if not isinstance(reference, str) or reference in path:
                    return {"type": "object"}, path
                path = (*path, reference)
                rest = {key: value for key, value in schema.items() if key != "$ref"}
                schema = {**self._target(reference), **rest}
                continue
            union = next((key for key in ("allOf", "anyOf", "oneOf") if _branches(schema, key)), None)
            if union is None:
                return schema, path
            branches = _branches(schema, union)
            taken = branches if union == "allOf" else [_first_that_is_something(branches)]
            rest = {key: value for key, value in schema.items() if key != union}
            for branch in taken:
                rest = _laid_together(rest, branch)
            schema = rest
        raise UnfitSchemaError("its input schema refers to itself without end")

    def _target(self, reference: str) -> Mapping[str, Any]:
        if not reference.startswith("#"):
            raise UnfitSchemaError(f"its input schema refers to {one_line(reference, 60)}")
        found: Any = self._root
        for part in filter(None, reference[1:].split("/")):
            key = part.replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, Mapping) else None
        if not isinstance(found, Mapping):
            raise UnfitSchemaError(
                f"its input schema refers to {one_line(reference, 60)}, which is not there"
            )
        return found


def _branches(schema: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    value = schema.get(key)
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _first_that_is_something(branches: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    return next((branch for branch in branches if branch.get("type") != "null"), branches[0])


def _laid_together(base: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    result = {**added, **base}
    first, second = base.get("properties"), added.get("properties")
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        result["properties"] = {**first, **second}
    needed = [names for names in (base.get("required"), added.get("required")) if isinstance(names, list)]
    if len(needed) == 2:
        result["required"] = [*needed[0], *needed[1]]
    return result


def _type_of(schema: Mapping[str, Any]) -> str:
    named = schema.get("type")
    names = [named] if isinstance(named, str) else named if isinstance(named, list) else []
    known = [name for name in names if isinstance(name, str) and name in _TYPES]
    fitting = next((name for name in known if name != "null"), known[0] if known else "")
    if fitting:
        return fitting
    if isinstance(schema.get("properties"), Mapping) or "additionalProperties" in schema:
        return "object"
    return "array" if "items" in schema else "string"


def _choices(schema: Mapping[str, Any]) -> list[Any]:
    """Plain values to choose from; a choice of everything under the sun is left to the check."""
    listed = [schema["const"]] if "const" in schema else schema.get("enum")
    if not isinstance(listed, list) or len(listed) > MOST_CHOICES:
        return []
    plain = [value for value in listed if isinstance(value, str | int | float) and _is_printable(value)]
    return list(dict.fromkeys(plain))


def _is_printable(value: Any) -> bool:
    return not isinstance(value, str) or (value.isprintable() and len(value) <= 200)


def _type_of_value(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    return "number" if isinstance(value, float) else "string"


def problems_of(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    """What is wrong with the arguments by the original schema, at most three lines; loads `jsonschema`.

    Patterns and formats are not checked here, the server does that. Nothing is fetched for references.
    """
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    validator = Draft202012Validator(_checkable(schema), registry=Registry())
    found: list[str] = []
    try:
        for error in validator.iter_errors(dict(arguments)):
            place = ".".join(str(part) for part in error.absolute_path)
            text = one_line(error.message, 200)
            found.append(f"{place}: {text}" if place else text)
            if len(found) == 3:
                break
    except (SchemaError, Unresolvable, RecursionError, TypeError, ValueError, AttributeError, KeyError):
        return []  # a schema that cannot be checked against is the server's to judge by
    return found


def _checkable(schema: Any, *, named: bool = False) -> Any:
    """`schema` without what is not checked here. `named` says that keys are names, not words of a schema."""
    if isinstance(schema, list):
        return [_checkable(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    by_name = ("properties", "$defs", "definitions", "dependentSchemas")
    as_data = ("enum", "const", "default", "examples", "required")
    return {
        key: value if not named and key in as_data else _checkable(value, named=not named and key in by_name)
        for key, value in schema.items()
        if named or key not in _UNCHECKED
    }
