from typing import Literal

from pydantic import BaseModel, Field

from agent.core.schema import parameters_schema


class Point(BaseModel):
    """A place on paper."""

    x: int
    label: str | None = None


class Tree(BaseModel):
    children: "list[Tree]" = []


class Everything(BaseModel):
    """Text for people."""

    path: str
    start: int | None = Field(default=None, description="first line", ge=1)
    kind: Literal["file", "folder"] = "file"
    only: Literal["this"] = "this"
    maybe: Literal["a", "b"] | None = None
    points: list[Point] = []
    nearest: Point | None = None
    either: str | list[str] = ""


def test_keeps_only_the_words_that_grammars_are_built_from():
    assert parameters_schema(Everything) == {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "start": {"type": "integer", "description": "first line"},
            "kind": {"type": "string", "enum": ["file", "folder"]},
            "only": {"type": "string", "enum": ["this"]},
            "maybe": {"type": "string", "enum": ["a", "b"]},
            "points": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"x": {"type": "integer"}, "label": {"type": "string"}},
                    "required": ["x"],
                },
            },
            "nearest": {
                "type": "object",
                "properties": {"x": {"type": "integer"}, "label": {"type": "string"}},
                "required": ["x"],
            },
            "either": {"type": "string"},
        },
        "required": ["path"],
    }


def test_a_recursive_type_ends_in_a_plain_object():
    schema = parameters_schema(Tree)

    assert schema == {
        "type": "object",
        "properties": {"children": {"type": "array", "items": {"type": "object"}}},
    }


def test_a_model_without_fields_has_empty_properties():
    class Nothing(BaseModel):
        pass

    assert parameters_schema(Nothing) == {"type": "object", "properties": {}}


def test_a_field_that_is_called_like_a_keyword_of_the_schema_is_kept():
    class Keywords(BaseModel):
        title: str
        default: int = 3
        description: str = ""

    assert list(parameters_schema(Keywords)["properties"]) == ["title", "default", "description"]
