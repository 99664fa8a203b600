"""A schema of somebody else's tool that has nearly everything that a grammar cannot be made of."""

from typing import Any

WILD: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {"next": {"$ref": "#/$defs/Node"}, "v": {"type": "integer"}},
        },
    },
    "properties": {
        "command": {"type": "string", "pattern": "^(?!rm )[a-z\\d]+$", "minLength": 1, "maxLength": 99999},
        "when": {"type": "string", "format": "date-time"},
        "maybe": {"anyOf": [{"type": "null"}, {"type": "number", "exclusiveMinimum": 0}]},
        "both": {"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"required": ["a"]}]},
        "kind": {"const": "x"},
        "level": {"enum": ["low", "high", None]},
        "list": {"type": "array", "items": {"type": ["string", "null"]}, "uniqueItems": True},
        "tuple": {"type": "array", "prefixItems": [{"type": "string"}], "items": False},
        "node": {"$ref": "#/$defs/Node"},
        "odd": {"type": "file"},
        "any": True,
        "map": {
            "type": "object",
            "patternProperties": {"^x-": {}},
            "additionalProperties": {"type": "string"},
        },
        "not": {"not": {"type": "string"}},
    },
    "required": ["command", "unknown", "kind"],
    "if": {"properties": {"kind": {"const": "y"}}},
    "then": {"required": ["list"]},
}
