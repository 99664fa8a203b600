import json
from typing import Any

import pytest

from agent.mcp.schema import UnfitSchemaError, problems_of, projected
from tests.mcp.wild_schema import WILD

LEFT = {"type", "properties", "required", "items", "enum", "description"}


def words(schema: Any, *, named: bool = False) -> set[str]:
    if not isinstance(schema, dict):
        return set()
    own = set() if named else set(schema)
    return own.union(
        *(words(value, named=not named and key == "properties") for key, value in schema.items())
    )


def test_only_what_grammars_can_be_made_of_is_left():
    assert words(projected(WILD)) <= LEFT


def test_types_choices_and_required_survive():
    schema = projected(WILD)
    kinds = {name: item["type"] for name, item in schema["properties"].items()}
    assert kinds["maybe"] == "number"
    assert kinds["list"] == "array"
    assert kinds["odd"] == kinds["any"] == "string"
    assert schema["properties"]["level"]["enum"] == ["low", "high"]
    assert schema["properties"]["both"]["required"] == ["a"]
    assert schema["properties"]["node"]["properties"]["next"] == {"type": "object"}
    assert schema["required"] == ["command", "kind"]


@pytest.mark.parametrize("depth", [1, 5, 6, 9])
def test_every_list_says_what_is_in_it_as_some_templates_ask(depth: int):
    schema: dict[str, Any] = {"type": "array"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"x": schema, "y": {"type": "array", "items": schema}}}
    text = json.dumps(projected(schema))
    assert text.count('"array"') == text.count('"items"') > 0


def test_parameters_may_have_the_names_of_schema_words():
    schema = projected(
        {"type": "object", "properties": {"pattern": {"type": "string"}, "$ref": {"type": "string"}}}
    )
    assert list(schema["properties"]) == ["pattern", "$ref"]


@pytest.mark.parametrize(
    "schema",
    [
        None,
        [],
        "object",
        {"type": "string"},
        {"type": "object", "properties": {"x": {"$ref": "http://example.org/a"}}},
        {"type": "object", "properties": {"x": {"$ref": "#/$defs/none"}}},
        {"type": "object", "properties": {"a\nb": {}}},
        {"type": "object", "properties": {f"p{number}": {} for number in range(200)}},
        {"type": "object", "description": "x" * 300_000},
    ],
)
def test_schema_that_cannot_be_offered_is_refused(schema: Any):
    with pytest.raises(UnfitSchemaError):
        projected(schema)


def test_deep_schema_ends_somewhere():
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(50):
        schema = {"type": "object", "properties": {"x": schema}}
    assert json.dumps(projected(schema)).count("properties") < 10


def test_schema_that_refers_to_itself_ends():
    loop = {"type": "object", "properties": {"x": {"$ref": "#"}}}
    assert projected(loop)["properties"]["x"] == {"type": "object", "properties": {"x": {"type": "object"}}}


def test_arguments_are_checked_against_the_original():
    assert problems_of({"command": "ls", "kind": "x", "unknown": 1, "maybe": 0}, WILD) == [
        "Additional properties are not allowed ('unknown' was unexpected)",
        "maybe: 0 is not valid under any of the given schemas",
    ]


def test_pattern_that_would_take_for_ever_is_left_to_the_server():
    schema = {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(a+)+$"}}}
    assert problems_of({"x": "a" * 50 + "!"}, schema) == []


def test_broken_schema_lets_the_server_judge():
    assert problems_of({"x": 1}, {"type": 5, "properties": {"x": {"$ref": "http://example.org/"}}}) == []
