"""A component declaration is checked where it is written."""

import pytest

from oasr.plugin import CommandSpec, ComponentSpec, Kind


def spec(**fields) -> ComponentSpec:
    return ComponentSpec(**{"kind": Kind.DECODER, "name": "beam", "summary": "S", "target": "a.b:C"} | fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "decoder"},
        {"name": "Beam"},
        {"name": "beam_search"},
        {"name": None},
        {"summary": " "},
        {"summary": None},
        {"target": "a.b.C"},
        {"target": None},
        {"config": "a.b"},
        {"aliases": "one"},
        {"aliases": ("a@b",)},
        {"capabilities": "streaming"},
        {"needs": [1]},
        {"requires": "triton"},
        {"requires": ("a.b",)},
        {"stability": "shaky"},
    ],
)
def test_a_malformed_field_is_refused(fields: dict) -> None:
    with pytest.raises(ValueError, match=str(next(iter(fields)))):
        spec(**fields)


def test_collections_may_be_written_in_any_form() -> None:
    given = spec(aliases=["b"], capabilities={"x"}, needs=("y",), requires=["z"])
    assert (given.aliases, given.capabilities, given.needs, given.requires) == (("b",), {"x"}, {"y"}, ("z",))
    assert hash(given) == hash(spec(aliases=("b",), capabilities={"x"}, needs={"y"}, requires=("z",)))


@pytest.mark.parametrize("fields", [{"name": "Bad Name"}, {"target": "a.b"}])
def test_a_malformed_command_is_refused(fields: dict) -> None:
    with pytest.raises(ValueError, match=next(iter(fields))):
        CommandSpec(**{"name": "greet", "summary": "S", "target": "a.b:c"} | fields)
