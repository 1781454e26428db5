"""Components and architectures that do not fit."""

import pytest

from oasr.config import check_needs
from oasr.errors import ConfigError
from oasr.plugin import ComponentSpec, Kind


def decoder(*needs):
    return ComponentSpec(Kind.DECODER, "beam", "A toy", "toy:Toy", needs=frozenset(needs))


def architecture(*capabilities):
    return ComponentSpec(Kind.ARCHITECTURE, "net", "A toy", "toy:Toy", capabilities=frozenset(capabilities))


def test_what_is_offered_satisfies():
    check_needs(decoder("autoregressive-head"), architecture("autoregressive-head", "translation"))
    check_needs(decoder(), architecture())


def test_what_is_missing_and_what_there_is():
    with pytest.raises(ConfigError) as caught:
        check_needs(decoder("transducer-head", "translation"), architecture("translation", "autoregressive-head"))
    assert str(caught.value) == (
        'decoder "beam" needs transducer-head; architecture "net" offers autoregressive-head, translation'
    )


def test_an_architecture_that_offers_nothing():
    with pytest.raises(ConfigError, match='architecture "net" offers nothing'):
        check_needs(decoder("ctc-head"), architecture())
