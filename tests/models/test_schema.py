"""A value fits a schema as JSON Schema says; pydantic in strict mode is the other opinion."""

from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from browseruse_bench.errors import ConfigError
from browseruse_bench.models.schema import check_schema, problems, root_type


class Cited(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    step: int | Literal["final"]
    quote: Annotated[str, Field(min_length=1, max_length=5, pattern=r"^[a-c]*$")]


class Found(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    item: Literal["A1", "A2"]
    share: Annotated[float, Field(ge=0, lt=1)] | None = None
    citations: Annotated[list[Cited], Field(min_length=1, max_length=2)]
    parent: "Found | None" = None
    more: dict[str, bool] = {}


SCHEMA = Found.model_json_schema()
OPINION = TypeAdapter(Found)

steps = st.one_of(st.integers(-1, 3), st.sampled_from(["final", "last", None, True, 1.0]))
cited = st.fixed_dictionaries(
    {"step": steps, "quote": st.sampled_from(["a", "abc", "", "abcabc", "d", 1])},
    optional={"x": st.none()},
)
found = st.deferred(
    lambda: st.fixed_dictionaries(
        {
            "item": st.sampled_from(["A1", "A2", "A3", "a1", 1, None]),
            "citations": st.one_of(st.lists(cited, max_size=3), st.none()),
        },
        optional={
            "share": st.sampled_from([0, 0.5, 1, -0.1, None, "0.5", True]),
            "parent": st.one_of(st.none(), found),
            "more": st.dictionaries(st.text(max_size=2), st.sampled_from([True, 0, None])),
        },
    )
)
correct = st.deferred(
    lambda: st.fixed_dictionaries(
        {
            "item": st.sampled_from(["A1", "A2"]),
            "citations": st.lists(
                st.fixed_dictionaries(
                    {
                        "step": st.sampled_from([0, 7, "final"]),
                        "quote": st.sampled_from(["a", "cab"]),
                    }
                ),
                min_size=1,
                max_size=2,
            ),
        },
        optional={"share": st.sampled_from([0.0, 0.99, None]), "parent": correct},
    )
)


def agrees(value):
    try:
        OPINION.validate_python(value)
    except ValidationError:
        return False
    return True


def test_the_schema_that_pydantic_writes_is_known_in_full():
    check_schema(SCHEMA)
    # Recursive, so its root is a reference.
    assert root_type(SCHEMA) == "object"


@given(st.one_of(found, correct))
def test_it_agrees_with_pydantic(value):
    assert (problems(value, SCHEMA) == []) == agrees(value), problems(value, SCHEMA)


@given(correct)
def test_what_is_correct_has_no_problem(value):
    assert problems(value, SCHEMA) == []


@pytest.mark.parametrize(
    ("schema", "right", "wrong", "said"),
    [
        ({"type": "integer"}, 1, True, "true is no integer"),
        ({"type": "integer"}, -3, 1.0, "1.0 is no integer"),
        ({"type": ["string", "null"]}, None, 1, "1 is no string or null"),
        ({"const": 1}, 1, True, "true is not 1"),
        ({"enum": [0, "a"]}, 0, False, 'false is not one of 0, "a"'),
        ({"minimum": 1}, 1, 0, "0 is below 1"),
        ({"exclusiveMaximum": 1}, 0.9, 1, "1 is not below 1"),
        ({"multipleOf": 5}, 10, 11, "no multiple of 5"),
        ({"maxLength": 2}, "ab", "abc", "3 characters, at most 2"),
        ({"pattern": "^a"}, "ab", "ba", "does not match ^a"),
        ({"minItems": 1}, [0], [], "0 entries, at least 1"),
        ({"uniqueItems": True}, [1, 1.0, True], [{"a": 1}, {"a": 1}], "twice"),
        ({"prefixItems": [{"type": "null"}], "items": False}, [None], [None, 1], "[1]: is not"),
        ({"maxProperties": 0}, {}, {"a": 1}, "1 fields, at most 0"),
        ({"additionalProperties": {"type": "null"}}, {"a": None}, {"a": 1}, "a: 1 is no null"),
        ({"oneOf": [{"minimum": 1}, {"maximum": 5}]}, 0, 3, "fits 2 alternatives"),
        ({"allOf": [{"minimum": 1}, {"maximum": 5}]}, 3, 6, "6 is above 5"),
        ({"not": {"const": 1}}, 2, 1, "1 is not wanted"),
        ({"anyOf": [{"type": "null"}, {"$ref": "#/$defs/A"}], "$defs": {"A": {"const": 2}}}, 2, 3,
         "none of 2"),
    ],
)  # fmt: skip
def test_each_word_holds_on_both_sides(schema, right, wrong, said):
    check_schema(schema)
    assert problems(right, schema) == []
    (problem,) = problems(wrong, schema)
    assert said in problem


def test_a_problem_names_its_place():
    schema = {"properties": {"a": {"items": {"properties": {"b": {"enum": ["met"]}}}}}}
    assert problems({"a": [{"b": "met"}, {"b": "MET "}]}, schema) == [
        'a[1].b: "MET " is not one of "met"'
    ]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"patternProperties": {}}, "'patternProperties'"),
        ({"properties": {"a": {"if": True}}}, "schema.properties.a: cannot hold a value to 'if'"),
        ({"type": "text"}, "no such type: 'text'"),
        ({"$ref": "#/$defs/A"}, "leads nowhere"),
        ({"$ref": "other.json"}, "leads nowhere"),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}, "leads to itself"),
        ({"pattern": "("}, "pattern"),
        ({"items": [{}]}, "is no schema"),
    ],
)
def test_a_schema_that_cannot_be_held_to_is_refused(schema, said):
    with pytest.raises(ConfigError, match=said.replace("(", r"\(").replace("$", r"\$")):
        check_schema(schema)
